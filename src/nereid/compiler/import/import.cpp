#include "nereid/compiler/import/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nereid/compiler/import/earlier_calls.h"
#include "nereid/compiler/output/source_file.h"
#include "nereid/trace/access.h"
#include "nereid/trace/op_class.h"

namespace nereid::compiler {
namespace {

const OperatorTable& operators() {
  static const OperatorTable table = [] {
    OperatorTable made;
    add_pointwise(made);
    add_special_functions(made);
    add_reductions(made);
    add_distances(made);
    add_contractions(made);
    add_norms(made);
    add_factories(made);
    add_shapes(made);
    add_gathers(made);
    add_pools(made);
    add_resampling(made);
    add_losses(made);
    add_counts(made);
    add_scans(made);
    add_attention(made);
    add_recurrent(made);
    add_sorts(made);
    add_scatters(made);
    add_random(made);
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

bool is_integer_list(const trace::Arg& arg) { return std::holds_alternative<trace::List>(arg.node); }

}  // namespace

const trace::Phase* last_forward(const trace::Trace& trace) {
  for (auto phase = trace.phases.rbegin(); phase != trace.phases.rend(); ++phase)
    if (phase->kind == trace::PhaseKind::kForward) return &*phase;
  return nullptr;
}

std::vector<Index> dimensions(size_t count, size_t from) {
  std::vector<Index> all;
  for (size_t d = 0; d < count; ++d) all.push_back(Index::dimension(static_cast<int>(from + d)));
  return all;
}

size_t axis_of(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

std::vector<ExprId> unraveled(Value linear, const Extents& sizes) {
  std::vector<ExprId> digits(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    const Value size = linear.constant(static_cast<double>(sizes[d]));
    const Value next = linear.apply(Fn::kIntDiv, size);
    digits[d] = d == 0 ? linear.id() : (linear - next * size).id();
    linear = next;
  }
  return digits;
}

std::string short_name(const std::string& op) {
  const std::string name = op.substr(op.find("::") + 2);
  return name.substr(0, name.find('.'));
}

Importer::Importer(const trace::Trace& trace, Graph& graph, const std::string& source)
    : trace_(trace), graph_(graph), assigned_(assigned_names(source)) {}

Result<Graph> import(const trace::Trace& trace, const std::string& source, const OtherBatch& other) {
  Graph graph;
  std::vector<TracedTensor> values;
  for (size_t id = 0; id < trace.values.size(); ++id)
    values.push_back(with_symbols(trace, static_cast<trace::ValueId>(id), other));
  graph.values = std::make_shared<const std::vector<TracedTensor>>(std::move(values));
  NEREID_TRY_STATUS(Importer(trace, graph, source).run());
  return graph;
}

Status Importer::run() {
  const trace::Phase* forward = last_forward(trace_);
  if (forward == nullptr) return input_error("the trace has no forward");
  std::vector<const trace::Call*> calls;
  for (const auto& step : forward->steps) {
    calls.push_back(std::get_if<trace::Call>(&step));
    if (calls.back() == nullptr)
      return input_error("the module launches Triton kernels of its own: there is nothing to lower");
  }
  const std::vector<const trace::Call*> earlier = earlier_calls(trace_);
  for (const trace::Call* call : earlier) NEREID_TRY_STATUS(step(*call, nullptr));
  const std::vector<CellLoop> loops = cell_loops(trace_, calls);
  std::map<size_t, const CellLoop*> of_loop;
  for (const CellLoop& loop : loops)
    for (const size_t call : loop.calls) of_loop[call] = &loop;
  for (size_t i = 0; i < calls.size(); ++i) {
    const size_t before = graph_.nodes.size();
    const auto found = of_loop.find(i);
    if (found == of_loop.end())
      NEREID_TRY_STATUS(step(*calls[i], i + 1 < calls.size() ? calls[i + 1] : nullptr));
    else if (found->second->at == i)
      NEREID_TRY_STATUS(loop(*found->second, calls));
    for (size_t n = before; n < graph_.nodes.size(); ++n) {
      Node& node = graph_.nodes[n];
      node.steps = {static_cast<int>(i)};
      if (found != of_loop.end()) node.steps.insert(found->second->calls.begin(), found->second->calls.end());
      if (!node.special() && node.reduction == Reduction::kNone)
        exprs().result_of(node.body, static_cast<int>(i));
    }
  }
  return outputs(*forward);
}

Status Importer::outputs(const trace::Phase& forward) {
  for (const auto& [storage, leaf] : leaves_)
    if (current_.at(storage) != leaf) {
      const auto& written = trace_.storages[static_cast<size_t>(storage)];
      if (written.role == trace::Role::kTemporary)
        return input_error("forward writes to {}, which is neither a parameter nor a buffer", written.name);
      const Tensor was = graph_.tensors[static_cast<size_t>(leaf)];
      TensorId from = current_.at(storage);
      const Tensor& now = graph_.tensors[static_cast<size_t>(from)];
      if (now.sizes != was.sizes || now.strides != was.strides) from = dense(was.leaf);
      graph_.updates.push_back({leaf, from});
    }
  const auto views = views_among(trace::tensors_in(forward.output));
  for (const auto id : trace::tensors_in(forward.output)) {
    const auto found = current(value(id).storage);
    if (!found) return std::exchange(trouble_, ok_status());
    graph_.looks.push_back(views.contains(id) ? id : -1);
    if (views.contains(id)) {
      graph_.outputs.push_back(*found);
      continue;
    }
    // What is handed out has the shape of the value; a view of something larger is written out. What forward
    // has changed in place it may hand out itself.
    const Tensor& made = graph_.tensors[static_cast<size_t>(*found)];
    const bool changed =
        std::ranges::any_of(graph_.updates, [&](const Update& u) { return u.from == *found; });
    const bool whole = made.sizes == value(id).sizes && made.strides == value(id).strides;
    if (changed && whole) {
      graph_.outputs.push_back(leaves_.at(value(id).storage));
      continue;
    }
    graph_.outputs.push_back(made.node >= 0 && whole ? *found : dense(id));
  }
  return ok_status();
}

std::set<trace::ValueId> Importer::views_among(const std::vector<trace::ValueId>& outputs) {
  std::set<trace::ValueId> views;
  std::map<trace::StorageId, int64_t> handed_out;
  bool computed = false;
  for (const trace::ValueId id : outputs) {
    const auto found = current(value(id).storage);
    if (!found) return {};
    handed_out[value(id).storage] += element_count(value(id).sizes);
    computed = computed || (graph_.maker(*found) != nullptr && trace::is_floating(value(id).dtype));
  }
  const bool only_views = graph_.nodes.empty();
  if (!computed && !only_views) return {};
  for (const trace::ValueId id : outputs) {
    const TracedTensor& view = value(id);
    const TensorId holder = *current(view.storage);
    const Tensor& of = graph_.tensors[static_cast<size_t>(holder)];
    const bool updated = std::ranges::any_of(
        graph_.updates, [&](const Update& u) { return u.leaf == holder || u.from == holder; });
    if (updated || of.type != view.dtype || of.offset > view.offset) continue;
    if (of.node < 0) {
      const auto role = trace_.storages[static_cast<size_t>(view.storage)].role;
      const bool state = role == trace::Role::kParameter || role == trace::Role::kBuffer;
      if (role == trace::Role::kInput || (only_views && state)) views.insert(id);
      continue;
    }
    const bool alone = std::ranges::count_if(outputs, [&](trace::ValueId other) {
                         return value(other).storage == view.storage;
                       }) == 1;
    const bool whole = of.sizes == view.sizes && of.strides == view.strides;
    const bool states = graph_.maker(holder)->recurrence.has_value();
    if (states ? alone
               : !alone && !whole && !graph_.maker(holder)->special() &&
                     handed_out[view.storage] >= element_count(of.sizes))
      views.insert(id);
  }
  return views;
}

bool Importer::hold(trace::ValueId result, TensorId in, const std::vector<size_t>& dims) {
  const TracedTensor& view = value(result);
  Tensor& of = graph_.tensors[static_cast<size_t>(in)];
  const bool whole = element_count(view.sizes) * trace::element_bytes(view.dtype) ==
                     trace_.storages.at(static_cast<size_t>(view.storage)).bytes;
  if (!whole || view.offset != 0 || view.dtype != of.type || current_.contains(view.storage) ||
      allocated_.contains(view.storage))
    return false;
  for (size_t d = 0; d < dims.size(); ++d)
    if (view.strides[dims[d]] != of.strides[d] || (d > 0 && view.sizes[dims[d]] != of.sizes[d])) return false;
  of.offset = (view.sizes[dims[0]] - of.sizes[0]) * of.strides[0];
  current_[view.storage] = in;
  return true;
}

// The value written out as it is in memory.
TensorId Importer::dense(trace::ValueId id) {
  const Extents sizes = value(id).sizes;
  Node copy{.sizes = sizes, .reduced = {}, .body = read(id, dimensions(sizes.size()), sizes), .name = "copy"};
  return graph_.add_node(std::move(copy), value(id).dtype, value(id).strides);
}

void Importer::name_results(const trace::Call* next, size_t first_node) {
  const trace::Place& place = call_->place;
  const auto line = static_cast<size_t>(std::max(place.line, 0));
  const bool own = place.file == trace_.file && line < assigned_.size();
  const bool last = next == nullptr || next->place.line != place.line || next->place.file != place.file;
  for (const trace::ValueId id : results()) {
    const auto found = current_.find(value(id).storage);
    if (found == current_.end()) continue;
    Tensor& made = graph_.tensors[static_cast<size_t>(found->second)];
    if (made.node < static_cast<NodeId>(first_node)) continue;
    if (own && last && !assigned_[line].empty()) made.name = assigned_[line];
    const Node& node = graph_.nodes[static_cast<size_t>(made.node)];
    if (!node.special() && node.reduction == Reduction::kNone) exprs().name(node.body, made.name);
  }
}

// Whether complex numbers are among what the call reads, and among what it makes.
std::pair<bool, bool> Importer::complex_in(const trace::Call& call) const {
  const auto any = [&](const trace::Arg& arg) {
    return std::ranges::any_of(trace::tensors_in(arg), [&](trace::ValueId id) {
      const auto type = value(id).dtype;
      return type == DType::kC32 || type == DType::kC64 || type == DType::kC128;
    });
  };
  bool takes = std::ranges::any_of(call.args, any);
  for (const auto& [key, arg] : call.kwargs) takes = takes || any(arg);
  return {takes, any(call.result)};
}

Status Importer::step(const trace::Call& call, const trace::Call* next) {
  call_ = &call;
  const size_t first_node = graph_.nodes.size();
  tf32_ = under_flag_ = window_ = false;
  trouble_ = ok_status();
  if (call.op == "nereid::constant") return ok_status();
  seeded_ = seeded_ || call.op == "nereid::manual_seed" || call.op == "nereid::restore_generator";
  if (const std::string why = other_stream(call); !why.empty()) return cannot(why);
  const auto kind = trace::listed_class(call.op);
  if (kind == trace::OpClass::kAllocation)
    for (const trace::ValueId id : results()) allocated_[value(id).storage] = id;
  const auto [takes, makes] = complex_in(call);
  if (kind == trace::OpClass::kView && takes != makes)
    return cannot("it looks at complex numbers as real ones, or the other way round");
  if (kind == trace::OpClass::kView || kind == trace::OpClass::kQuery || kind == trace::OpClass::kAllocation)
    return ok_status();
  if (takes || makes) return keep(call, "Triton has no complex type");
  const auto found = operators().find(base_name(call.op));
  if (found == operators().end()) return keep(call);
  const Status done = found->second(*this);
  if (done.ok()) name_results(next, first_node);
  if (done.ok() || !trouble_.ok()) return done;
  return keep(call);
}

std::string Importer::other_stream(const trace::Call& call) const {
  if (!trace::draws_random(call)) return "";
  const auto own = [](const trace::Arg& arg) {
    const auto* named = std::get_if<trace::Named>(&arg.node);
    return named != nullptr && named->kind == "generator";
  };
  if (std::ranges::any_of(call.args, own) ||
      std::ranges::any_of(call.kwargs, own, [](const auto& kwarg) { return kwarg.second; }))
    return "it draws from a generator of its own, which the written file does not have";
  return seeded_ ? "it draws after forward has seeded a generator, which the written file does not do" : "";
}

Status Importer::keep(const trace::Call& call, std::string why) {
  const std::string name = call.op.substr(0, call.op.find('.'));
  if (name.ends_with("_") || !name.starts_with("aten::")) return cannot("it has no expression here");
  Node node{.name = name.substr(6)};
  node.call = &call, node.kept_for = std::move(why);
  node.place = call.place;
  const auto take = [&](const trace::Arg& arg) {
    for (const trace::ValueId id : trace::tensors_in(arg))
      if (const auto tensor = current(value(id).storage)) node.inputs.emplace_back(id, *tensor);
  };
  for (const auto& arg : call.args) take(arg);
  for (const auto& [key, arg] : call.kwargs) take(arg);
  if (!trouble_.ok()) return std::exchange(trouble_, ok_status());
  for (const trace::ValueId id : results()) {
    const TracedTensor& made = value(id);
    if (current_.contains(made.storage)) return cannot("it writes in place, and has no expression here");
    graph_.tensors.push_back({.type = made.dtype,
                              .sizes = made.sizes,
                              .strides = made.strides,
                              .offset = made.offset,
                              .node = static_cast<NodeId>(graph_.nodes.size()),
                              .name = node.name});
    node.outs.push_back(static_cast<TensorId>(graph_.tensors.size()) - 1);
    current_[made.storage] = node.outs.back();
  }
  if (node.outs.empty()) return cannot("it has no expression here");
  node.out = node.outs.front();
  node.sizes = graph_.tensors[static_cast<size_t>(node.out)].sizes;
  graph_.nodes.push_back(std::move(node));
  return ok_status();
}

Status Importer::cannot(std::string why) const {
  if (call_ == nullptr) return input_error("{}", why);
  return input_error("{} ({}:{}) cannot be lowered: {}", call_->op, call_->place.file, call_->place.line,
                     why);
}

void Importer::fail(std::string why) {
  if (trouble_.ok()) trouble_ = cannot(std::move(why));
}

// A sum or a product over nothing is 0 or 1, and no loop.
Node Importer::without_empty_reduction(Node node) {
  const bool known = node.reduction == Reduction::kSum || node.reduction == Reduction::kProd;
  if (!known || node.scan || element_count(node.reduced) != 0) return node;
  node.body = exprs().constant(node.reduction == Reduction::kProd ? 1 : 0, exprs()[node.body].type);
  node.reduced.clear(), node.reduction = Reduction::kNone;
  return node;
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

}  // namespace nereid::compiler
