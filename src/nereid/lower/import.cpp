#include "nereid/lower/import.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "nereid/trace/op_class.h"

namespace nereid::lower {
namespace {

const OperatorTable& operators() {
  static const OperatorTable table = [] {
    OperatorTable made;
    add_pointwise(made);
    add_reductions(made);
    add_contractions(made);
    return made;
  }();
  return table;
}

// "aten::add" of "aten::add.Tensor" and of "aten::add_.Scalar": what is written in place is the same
// function.
std::string base_name(const std::string& op) {
  std::string name = op.substr(0, op.find('.'));
  if (name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_') name.pop_back();
  return name;
}

const trace::Phase* last_forward(const trace::Trace& trace) {
  for (auto phase = trace.phases.rbegin(); phase != trace.phases.rend(); ++phase)
    if (phase->kind == trace::PhaseKind::kForward) return &*phase;
  return nullptr;
}

bool is_integer_list(const trace::Arg& arg) { return std::holds_alternative<trace::List>(arg.node); }

}  // namespace

std::vector<Index> dimensions(size_t count, size_t from) {
  std::vector<Index> all;
  for (size_t d = 0; d < count; ++d) all.push_back(Index::dimension(static_cast<int>(from + d)));
  return all;
}

Result<Graph> import(const trace::Trace& trace) {
  Graph graph;
  NEREID_TRY_STATUS(Importer(trace, graph).run());
  return graph;
}

Status Importer::run() {
  const trace::Phase* forward = last_forward(trace_);
  if (forward == nullptr) return input_error("the trace has no forward");
  for (const auto& step : forward->steps) {
    const auto* call = std::get_if<trace::Call>(&step);
    if (call == nullptr)
      return input_error("the module launches Triton kernels of its own: there is nothing to lower");
    NEREID_TRY_STATUS(this->step(*call));
  }
  for (const auto id : trace::tensors_in(forward->output)) {
    const auto found = current_.find(value(id).storage);
    if (found == current_.end()) NEREID_TRY_STATUS(leaf_of(value(id).storage));
    TensorId tensor = current_.at(value(id).storage);
    // What is handed out has the shape of the value; a view of something larger is written out.
    const Tensor& made = graph_.tensors[static_cast<size_t>(tensor)];
    if (made.node < 0 || made.sizes != value(id).sizes || made.strides != value(id).strides) {
      const Extents sizes = value(id).sizes;
      Node copy{
          .sizes = sizes, .reduced = {}, .body = read(id, dimensions(sizes.size()), sizes), .name = "copy"};
      tensor = graph_.add_node(std::move(copy), value(id).dtype, value(id).strides);
    }
    graph_.outputs.push_back(tensor);
  }
  return ok_status();
}

Status Importer::step(const trace::Call& call) {
  call_ = &call;
  tf32_ = false;
  const auto kind = trace::listed_class(call.op);
  if (kind == trace::OpClass::kView || kind == trace::OpClass::kQuery || kind == trace::OpClass::kAllocation)
    return ok_status();
  const auto found = operators().find(base_name(call.op));
  if (found == operators().end()) return cannot("it has no expression here");
  return found->second(*this);
}

Status Importer::cannot(std::string why) const {
  return input_error("{} ({}:{}) cannot be lowered: {}", call_->op, call_->place.file, call_->place.line,
                     why);
}

const trace::Arg* Importer::arg(size_t position, std::string_view name) const {
  if (position < call_->args.size()) return &call_->args[position];
  for (const auto& [key, arg] : call_->kwargs)
    if (key == name) return &arg;
  return nullptr;
}

std::optional<trace::ValueId> Importer::tensor(const trace::Arg* arg) const {
  const auto* ref = arg == nullptr ? nullptr : std::get_if<trace::TensorRef>(&arg->node);
  return ref == nullptr ? std::nullopt : std::optional(ref->value);
}

double Importer::number(const trace::Arg* arg, double otherwise) const {
  if (arg == nullptr) return otherwise;
  if (const auto* real = std::get_if<double>(&arg->node)) return *real;
  if (const auto* whole = std::get_if<int64_t>(&arg->node)) return static_cast<double>(*whole);
  if (const auto* flag = std::get_if<bool>(&arg->node)) return *flag ? 1 : 0;
  return otherwise;
}

int64_t Importer::integer(const trace::Arg* arg, int64_t otherwise) const {
  const auto* whole = arg == nullptr ? nullptr : std::get_if<int64_t>(&arg->node);
  return whole == nullptr ? otherwise : *whole;
}

bool Importer::flag(const trace::Arg* arg, bool otherwise) const {
  return number(arg, otherwise ? 1 : 0) != 0;
}

std::vector<int64_t> Importer::integers(const trace::Arg* arg) const {
  std::vector<int64_t> all;
  if (arg == nullptr) return all;
  if (const auto* whole = std::get_if<int64_t>(&arg->node)) return {*whole};
  if (is_integer_list(*arg))
    for (const auto& item : std::get<trace::List>(arg->node).items) all.push_back(integer(&item, 0));
  return all;
}

std::string Importer::text(const trace::Arg* arg, std::string otherwise) const {
  const auto* text = arg == nullptr ? nullptr : std::get_if<trace::Text>(&arg->node);
  return text == nullptr ? otherwise : text->text;
}

// As the first value of the trace that shows all of it.
Status Importer::leaf_of(trace::StorageId storage) {
  const auto& role = trace_.storages.at(static_cast<size_t>(storage));
  const auto widest = [&](const auto& ids) -> std::optional<trace::ValueId> {
    for (const trace::ValueId id : ids)
      if (value(id).storage == storage) return id;
    return std::nullopt;
  };
  std::vector<trace::ValueId> state;
  for (const auto& each : trace_.state) state.push_back(each.value);
  auto found = widest(trace::tensors_in(last_forward(trace_)->inputs));
  if (!found) found = widest(state);
  if (!found) return cannot(fmt::format("it reads {}, which is neither an input nor state", role.name));
  current_[storage] = graph_.add_leaf(value(*found), *found, role.name);
  return ok_status();
}

void Importer::contraction_under(const std::string& flag) {
  const auto found = trace_.flags.find(flag);
  tf32_ = found != trace_.flags.end() && found->second != 0;
}

ExprId Importer::load(TensorId tensor, std::vector<Index> at) {
  const Tensor& made = graph_.tensors.at(static_cast<size_t>(tensor));
  const DType type = compute_type(made.type);
  return exprs().cast(exprs().load(tensor, std::move(at), made.type), type);
}

ExprId Importer::read(trace::ValueId id, const std::vector<Index>& at, const Extents& extents) {
  const trace::Value& view = value(id);
  const auto found = current_.find(view.storage);
  if (found == current_.end() && !leaf_of(view.storage).ok()) return -1;
  const TensorId tensor = current_.at(view.storage);
  const Tensor& made = graph_.tensors[static_cast<size_t>(tensor)];
  if (made.sizes == view.sizes && made.strides == view.strides && made.offset == view.offset)
    return load(tensor, at);
  // Through the address: the tensor's dimensions are its digits, the widest stride first.
  Index address(view.offset - made.offset);
  for (size_t d = 0; d < at.size(); ++d)
    if (view.sizes[d] > 1) address = address + at[d] * view.strides[d];
  std::vector<size_t> order(made.sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return made.strides[a] > made.strides[b]; });
  std::vector<Index> digits(made.sizes.size());
  for (const size_t d : order) {
    if (made.sizes[d] <= 1 || made.strides[d] == 0) continue;
    digits[d] = quotient(address, made.strides[d], extents);
    address = remainder(address, made.strides[d], extents);
  }
  return load(tensor, std::move(digits));
}

ExprId Importer::operand(trace::ValueId id, const Extents& sizes, DType type) {
  const trace::Value& view = value(id);
  std::vector<Index> at;
  const size_t missing = sizes.size() - view.sizes.size();
  for (size_t d = 0; d < view.sizes.size(); ++d)
    at.push_back(view.sizes[d] == 1 ? Index() : Index::dimension(static_cast<int>(missing + d)));
  const ExprId read = this->read(id, at, sizes);
  return read < 0 ? read : exprs().cast(read, type);
}

ExprId Importer::operand(const trace::Arg* arg, const Extents& sizes, DType type) {
  if (const auto id = tensor(arg)) return operand(*id, sizes, type);
  return exprs().constant(number(arg, std::nan("")), type);
}

Status Importer::define(trace::ValueId result, ExprId body, std::string name) {
  return define_reduction(result, Reduction::kNone, value(result).sizes, {}, body, std::move(name));
}

Status Importer::define_reduction(trace::ValueId result, Reduction reduction, const Extents& sizes,
                                  const Extents& reduced, ExprId body, std::string name) {
  if (body < 0) return cannot("it reads what is neither an input, state nor a result");
  const trace::Value& view = value(result);
  if (trace::element_bytes(view.dtype) == 1 && trace::is_floating(view.dtype))
    return cannot("its result is of eight bits");
  // In place: the whole of a storage becomes something new.
  const auto before = current_.find(view.storage);
  if (before != current_.end()) {
    const Tensor& was = graph_.tensors[static_cast<size_t>(before->second)];
    if (element_count(was.sizes) != element_count(view.sizes))
      return cannot("it writes a part of something that was there before");
  }
  if (reduction == Reduction::kNone) body = exprs().cast(body, compute_type(view.dtype));
  Node node{
      .sizes = sizes, .reduced = reduced, .reduction = reduction, .body = body, .name = std::move(name)};
  node.place = call_->place;
  node.tf32 = tf32_ && reduction == Reduction::kSum;
  // A reduction that keeps its dimensions is laid out as one that does not.
  current_[view.storage] =
      graph_.add_node(std::move(node), view.dtype, sizes == view.sizes ? view.strides : row_major(sizes));
  return ok_status();
}

TensorId Importer::temporary(Reduction reduction, const Extents& sizes, const Extents& reduced, ExprId body,
                             DType type, std::string name) {
  Node node{
      .sizes = sizes, .reduced = reduced, .reduction = reduction, .body = body, .name = std::move(name)};
  node.place = call_->place;
  node.tf32 = tf32_ && reduction == Reduction::kSum;
  return graph_.add_node(std::move(node), type);
}

}  // namespace nereid::lower
