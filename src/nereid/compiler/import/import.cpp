#include "nereid/compiler/import/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "nereid/compiler/ir/constant_data.h"
#include "nereid/compiler/output/source_file.h"
#include "nereid/trace/access.h"
#include "nereid/trace/op_class.h"

namespace nereid::compiler {
namespace {

const OperatorTable& operators() {
  static const OperatorTable table = [] {
    OperatorTable made;
    add_pointwise(made);
    add_reductions(made);
    add_contractions(made);
    add_norms(made);
    add_factories(made);
    add_shapes(made);
    add_gathers(made);
    add_pools(made);
    add_losses(made);
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

const trace::Phase* last_forward(const trace::Trace& trace) {
  for (auto phase = trace.phases.rbegin(); phase != trace.phases.rend(); ++phase)
    if (phase->kind == trace::PhaseKind::kForward) return &*phase;
  return nullptr;
}

bool is_integer_list(const trace::Arg& arg) { return std::holds_alternative<trace::List>(arg.node); }

// Where the element `at` of a view is in the tensor `of`. A dimension of the view that steps along one of
// the tensor's, and stays in it, is a term there: so what a window or a concatenation reads outside the view
// (and throws away) is outside the tensor, or any element of it, and its place is still a simple sum. What
// other dimensions add is an address, of which the tensor's dimensions are the digits, the widest stride
// first; so is all of it where both meet.
std::vector<Index> seen_through(const TracedTensor& view, const Tensor& of, const std::vector<Index>& at,
                                const Extents& extents) {
  std::vector<size_t> order;
  for (size_t d = 0; d < of.sizes.size(); ++d)
    if (of.sizes[d] > 1 && of.strides[d] != 0) order.push_back(d);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return of.strides[a] > of.strides[b]; });
  std::vector<Index> where(of.sizes.size());
  Extents last(of.sizes.size(), 0);  // the view's last element
  Size offset = view.offset - of.offset;
  for (const size_t along : order) {
    last[along] = offset / of.strides[along];
    offset %= of.strides[along];
    where[along] = Index(last[along]);
  }
  Index address(offset), whole(view.offset - of.offset);
  for (size_t d = 0; d < view.sizes.size(); ++d) {
    if (view.sizes[d] <= 1) continue;
    whole = whole + at[d] * view.strides[d];
    const auto along = std::ranges::find_if(order, [&](size_t k) {
      return view.strides[d] % of.strides[k] == 0 &&
             last[k] + (view.sizes[d] - 1) * (view.strides[d] / of.strides[k]) < of.sizes[k];
    });
    if (along == order.end()) {
      address = address + at[d] * view.strides[d];
      continue;
    }
    const Size step = view.strides[d] / of.strides[*along];
    last[*along] += (view.sizes[d] - 1) * step;
    where[*along] = where[*along] + at[d] * step;
  }
  const auto digit = [&](Index& left, size_t along) {
    Index first = quotient(left, of.strides[along], extents);
    left = remainder(left, of.strides[along], extents);
    return first;
  };
  for (const size_t along : order) {
    const Index more = digit(address, along);
    if (more != Index() && last[along] != 0) {
      for (const size_t each : order) where[each] = digit(whole, each);
      return where;
    }
    where[along] = where[along] + more;
  }
  return where;
}

}  // namespace

std::vector<Index> dimensions(size_t count, size_t from) {
  std::vector<Index> all;
  for (size_t d = 0; d < count; ++d) all.push_back(Index::dimension(static_cast<int>(from + d)));
  return all;
}

size_t axis_of(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
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
    if (!alone && !whole && !graph_.maker(holder)->special() &&
        handed_out[view.storage] >= element_count(of.sizes))
      views.insert(id);
  }
  return views;
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

TensorId Importer::add_leaf(trace::ValueId id, const std::string& name) {
  const TensorId leaf = graph_.add_leaf(value(id), id, name);
  graph_.tensors.back().learned =
      trace_.storages[static_cast<size_t>(value(id).storage)].role == trace::Role::kParameter;
  return leaf;
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
  // A constant that the file writes down, as a whole.
  if (!found && role.role == trace::Role::kConstant && !role.data.empty())
    for (size_t id = 0; id < trace_.values.size() && !found; ++id) {
      const TracedTensor& each = value(static_cast<trace::ValueId>(id));
      const bool whole = element_count(each.sizes) * trace::element_bytes(each.dtype) == role.bytes &&
                         each.strides == row_major(each.sizes);
      if (each.storage == storage && whole) found = static_cast<trace::ValueId>(id);
    }
  if (!found)
    return cannot(fmt::format("it reads {}, which is neither an input nor state",
                              role.name.empty() ? "a tensor that an earlier call made" : role.name));
  current_[storage] = leaves_[storage] = add_leaf(*found, role.name);
  return ok_status();
}

void Importer::contraction_under(const std::string& flag) {
  const auto found = trace_.flags.find(flag);
  tf32_ = found != trace_.flags.end() && found->second != 0;
  under_flag_ = true;
}

std::string Importer::device_text(const TracedTensor& value) const {
  const bool cpu = trace_.storages[static_cast<size_t>(value.storage)].device == trace::Device::kCpu;
  return cpu ? "\"cpu\"" : "device";
}

TensorId Importer::draw(const Extents& sizes, Extents strides, DType type, std::string text,
                        std::string name) {
  if (text.find("device=\"cpu\"") != text.npos) text += ".to(device)";
  Node node{.sizes = sizes, .name = std::move(name)};
  node.call = call_, node.draw = std::move(text);
  node.place = call_->place;
  const TensorId made = graph_.add_node(std::move(node), type, std::move(strides));
  graph_.nodes.back().outs = {made};
  return made;
}

ExprId Importer::load(TensorId tensor, std::vector<Index> at) {
  const Tensor& made = graph_.tensors.at(static_cast<size_t>(tensor));
  const DType type = compute_type(made.type);
  return exprs().cast(exprs().load(tensor, std::move(at), made.type), type);
}

std::optional<TensorId> Importer::current(trace::StorageId storage) {
  const auto found = current_.find(storage);
  if (found != current_.end()) return found->second;
  if (const Status leaf = leaf_of(storage); !leaf.ok()) {
    if (trouble_.ok()) trouble_ = leaf;
    return std::nullopt;
  }
  return current_.at(storage);
}

TensorId Importer::leaf_around(const TracedTensor& view, TensorId leaf) {
  const auto last = [](int64_t offset, const Extents& sizes, const Extents& strides) {
    for (size_t d = 0; d < sizes.size(); ++d)
      offset += std::max<int64_t>(sizes[d] - 1, 0) * strides[d].value();
    return offset;
  };
  const Tensor of = graph_.tensors[static_cast<size_t>(leaf)];
  const int64_t end = last(view.offset, view.sizes, view.strides);
  if (of.node >= 0 || (of.offset <= view.offset && end <= last(of.offset, of.sizes, of.strides))) return leaf;
  std::vector<trace::ValueId> all = trace::tensors_in(last_forward(trace_)->inputs);
  for (const auto& each : trace_.state) all.push_back(each.value);
  for (const trace::ValueId id : all) {
    const TracedTensor& other = value(id);
    if (other.storage != view.storage || other.dtype != view.dtype || other.offset > view.offset ||
        end > last(other.offset, other.sizes, other.strides))
      continue;
    const auto known = parts_.find(id);
    if (known != parts_.end()) return known->second;
    return parts_[id] = add_leaf(id, of.name);
  }
  return leaf;
}

ExprId Importer::read(trace::ValueId id, const std::vector<Index>& at, const Extents& extents) {
  return read(value(id), at, extents);
}

ExprId Importer::read(const TracedTensor& view, const std::vector<Index>& at, const Extents& extents) {
  const DType type = compute_type(view.dtype);
  const auto tensor = current(view.storage);
  if (!tensor) return exprs().constant(0, type);
  const Tensor made = graph_.tensors[static_cast<size_t>(leaf_around(view, *tensor))];
  // A buffer and an argument have other values at the next call.
  const bool given =
      std::ranges::any_of(trace_.state,
                          [&](const auto& each) { return value(each.value).storage == view.storage; }) ||
      std::ranges::any_of(trace::tensors_in(last_forward(trace_)->inputs),
                          [&](trace::ValueId id) { return value(id).storage == view.storage; });
  if (const trace::Storage& kept = trace_.storages[static_cast<size_t>(view.storage)];
      made.node < 0 && kept.role == trace::Role::kConstant && !given)
    if (const auto numbers = constant_numbers(kept, made.type); numbers.size() == 1)
      return exprs().constant(numbers[0], type);
  if (made.type != view.dtype) {
    fail("it looks at the bits of one type as another");
    return exprs().constant(0, type);
  }
  const TensorId from = leaf_around(view, *tensor);
  if (made.sizes == view.sizes && made.strides == view.strides && made.offset == view.offset)
    return load(from, at);
  return load(from, seen_through(view, made, at, extents));
}

ExprId Importer::read(trace::ValueId id, const std::vector<Index>& at, std::vector<ExprId> further,
                      const Extents& extents) {
  const TracedTensor view = value(id);
  const DType type = compute_type(view.dtype);
  const auto found = current(view.storage);
  if (!found) return exprs().constant(0, type);
  TensorId tensor = leaf_around(view, *found);
  const Tensor made = graph_.tensors[static_cast<size_t>(tensor)];
  if (made.sizes != view.sizes || made.strides != view.strides || made.offset != view.offset) {
    // Its digits would be those of an unknown number: a leaf is looked at as the view does, anything
    // else goes through a map of the view's shape.
    if (made.node < 0) {
      tensor = graph_.add_leaf(view, made.leaf, made.name);
      graph_.tensors.back().learned = made.learned;
      graph_.tensors.back().shift = view.offset - made.offset;
    } else {
      tensor = dense(id);
    }
  }
  static_cast<void>(extents);
  return exprs().cast(exprs().load(tensor, at, view.dtype, std::move(further)), type);
}

std::optional<int64_t> Importer::regular_steps(trace::ValueId id) {
  const auto found = current_.find(value(id).storage);
  const Node* maker = found == current_.end() ? nullptr : graph_.maker(found->second);
  if (maker == nullptr || maker->special() || maker->reduction != Reduction::kNone ||
      maker->sizes.size() != 1)
    return std::nullopt;
  ExprId body = maker->body;
  while (exprs()[body].kind == Expr::Kind::kApply && exprs()[body].fn == Fn::kCast)
    body = exprs()[body].args[0];
  int64_t scale = 1;
  if (const Expr product = exprs()[body]; product.kind == Expr::Kind::kApply && product.fn == Fn::kMul &&
                                          exprs()[product.args[1]].kind == Expr::Kind::kConstant) {
    scale = exprs()[product.args[1]].integer;
    body = product.args[0];
  }
  const Expr& index = exprs()[body];
  if (index.kind != Expr::Kind::kIndex || index.index.constant() != 0) return std::nullopt;
  const auto stride = index.index.stride(0);
  return stride ? std::optional(*stride * scale) : std::nullopt;
}

ExprId Importer::without_shift(trace::ValueId id, size_t axis, ExprId element) {
  const Extents sizes = value(id).sizes;
  const auto found = current_.find(value(id).storage);
  if (found == current_.end()) return element;
  const Tensor& made = graph_.tensors[static_cast<size_t>(found->second)];
  const Node* maker = graph_.maker(found->second);
  if (maker == nullptr || maker->special() || maker->reduction != Reduction::kNone || !maker->at.empty() ||
      made.sizes != sizes || made.strides != value(id).strides || made.type != DType::kF32)
    return element;
  const auto dimension = static_cast<int>(axis);
  const auto largest_of = [&](const Expr& load, ExprId of) {
    const Node* reduction = graph_.maker(load.tensor);
    if (reduction == nullptr || reduction->special() || reduction->reduction != Reduction::kMax ||
        reduction->scan || reduction->reduced != Extents{sizes[axis]} ||
        reduction->sizes.size() + 1 != sizes.size())
      return false;
    std::vector<Index> by, in_body;
    for (size_t d = 0, next = 0; d < sizes.size(); ++d) {
      const bool reduced = d == axis;
      in_body.push_back(Index::dimension(static_cast<int>(reduced ? sizes.size() - 1 : next++)));
      if (!reduced) by.push_back(sizes[d] == 1 ? Index() : Index::dimension(static_cast<int>(d)));
    }
    return load.at == by && exprs().substitute(of, in_body, reduction->extents()) == reduction->body;
  };
  const auto harmless = [&](ExprId shift, ExprId of) {
    const Expr expr = exprs()[shift];
    if (expr.kind == Expr::Kind::kConstant) return std::isfinite(expr.number);
    if (expr.kind != Expr::Kind::kLoad || !expr.args.empty() || exprs().uses(shift, dimension)) return false;
    const Tensor& from = graph_.tensors[static_cast<size_t>(expr.tensor)];
    if (from.node >= 0) return largest_of(expr, of);
    const TracedTensor& leaf = value(from.leaf);
    return trace_.storages[static_cast<size_t>(leaf.storage)].role == trace::Role::kParameter;
  };
  ExprId left = maker->body;
  bool changed = false;
  for (Expr expr = exprs()[left];
       expr.kind == Expr::Kind::kApply && (expr.fn == Fn::kAdd || expr.fn == Fn::kSub);
       expr = exprs()[left]) {
    const bool second = harmless(expr.args[1], expr.args[0]);
    if (!second && (expr.fn == Fn::kSub || !harmless(expr.args[0], expr.args[1]))) break;
    left = expr.args[second ? 0 : 1];
    changed = true;
  }
  if (!changed) return element;
  graph_.rewrites.push_back(
      fmt::format("{} (line {}): what is added to a whole row changes nothing and is left out",
                  short_name(call_->op), call_->place.line));
  return left;
}

ExprId Importer::operand(trace::ValueId id, const Extents& sizes, DType type) {
  const TracedTensor& view = value(id);
  if (view.sizes.size() > sizes.size()) {
    fail("an operand has more dimensions than the result");
    return exprs().constant(0, type);
  }
  std::vector<Index> at;
  const size_t missing = sizes.size() - view.sizes.size();
  for (size_t d = 0; d < view.sizes.size(); ++d)
    at.push_back(view.sizes[d] == 1 ? Index() : Index::dimension(static_cast<int>(missing + d)));
  return exprs().cast(read(id, at, sizes), type);
}

ExprId Importer::operand(const trace::Arg* arg, const Extents& sizes, DType type) {
  if (const auto id = tensor(arg)) return operand(*id, sizes, type);
  return exprs().constant(number(arg, std::nan("")), type);
}

Value Importer::operand(size_t position) {
  const TracedTensor& out = result();
  return {exprs(), operand(arg(position, ""), out.sizes, compute_type(out.dtype))};
}

Status Importer::define(trace::ValueId result, ExprId body, std::string name) {
  return define_reduction(result, Reduction::kNone, value(result).sizes, {}, body, std::move(name));
}

Status Importer::define_reduction(trace::ValueId result, Reduction reduction, const Extents& sizes,
                                  const Extents& reduced, ExprId body, std::string name) {
  if (reduction == Reduction::kNone) body = exprs().cast(body, compute_type(value(result).dtype));
  return define(
      result,
      {.sizes = sizes, .reduced = reduced, .reduction = reduction, .body = body, .name = std::move(name)});
}

Status Importer::define_reduction_at(trace::ValueId result, Reduction reduction, const Extents& sizes,
                                     const Extents& reduced, std::vector<Index> at, ExprId body,
                                     std::string name) {
  Node node{
      .sizes = sizes, .reduced = reduced, .reduction = reduction, .body = body, .name = std::move(name)};
  node.at = std::move(at);
  return define(result, std::move(node));
}

TensorId Importer::temporary_at(Reduction reduction, const Extents& sizes, const Extents& reduced,
                                std::vector<Index> at, const Extents& out, ExprId body, DType type,
                                std::string name) {
  Node node{
      .sizes = sizes, .reduced = reduced, .reduction = reduction, .body = body, .name = std::move(name)};
  node.at = std::move(at);
  node.place = call_->place;
  node.tf32 = tf32_, node.under_flag = under_flag_;
  node.window = window_;
  return graph_.add_node(std::move(node), type, {}, out);
}

Status Importer::define_scan(trace::ValueId result, Reduction reduction, const Extents& sizes,
                             const Extents& reduced, std::vector<Index> at, ExprId body, std::string name) {
  Node node{
      .sizes = sizes, .reduced = reduced, .reduction = reduction, .body = body, .name = std::move(name)};
  node.scan = true;
  node.at = std::move(at);
  return define(result, std::move(node));
}

Status Importer::define(trace::ValueId result, Node node) {
  NEREID_TRY_STATUS(trouble_);
  const TracedTensor& view = value(result);
  if (trace::element_bytes(view.dtype) == 1 && trace::is_floating(view.dtype))
    return cannot("its result is of eight bits");
  node.place = call_->place;
  const bool sums = node.reduction == Reduction::kSum && !node.scan;
  node.tf32 = tf32_ && sums, node.under_flag = under_flag_ && sums;
  node.window = window_;
  // Where it writes a part of a storage, the rest stays.
  const int64_t bytes = element_count(view.sizes) * trace::element_bytes(view.dtype);
  const bool whole = bytes >= trace_.storages.at(static_cast<size_t>(view.storage)).bytes && view.offset == 0;
  const auto before = current_.find(view.storage);
  const bool fresh = before == current_.end() && !allocated_.contains(view.storage) &&
                     trace_.storages[static_cast<size_t>(view.storage)].role == trace::Role::kTemporary;
  if (!whole && !fresh) {
    if (before == current_.end() && allocated_.contains(view.storage)) {
      const trace::ValueId all = allocated_.at(view.storage);
      Node nothing{
          .sizes = value(all).sizes, .body = exprs().constant(0, compute_type(view.dtype)), .name = "empty"};
      current_[view.storage] = graph_.add_node(std::move(nothing), view.dtype, value(all).strides);
    }
    const auto base = current(view.storage);
    if (!base) return std::exchange(trouble_, ok_status());
    if (node.sizes != view.sizes || !node.at.empty()) return cannot("it reduces into a part of something");
    const TensorId made = graph_.add_node(std::move(node), view.dtype);
    return patch(view, *base, made);
  }
  // A reduction that keeps its dimensions is laid out as one that does not.
  if (!node.at.empty())
    current_[view.storage] = graph_.add_node(std::move(node), view.dtype, view.strides, view.sizes);
  else
    current_[view.storage] =
        graph_.add_node(node, view.dtype, node.sizes == view.sizes ? view.strides : row_major(node.sizes));
  return ok_status();
}

Status Importer::patch(const TracedTensor& view, TensorId base, TensorId made) {
  const Tensor was = graph_.tensors[static_cast<size_t>(base)];
  const size_t rank = was.sizes.size();
  // Which dimension of what was there each of the view's is, and where it starts.
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return was.strides[a] > was.strides[b]; });
  Extents start(rank, 0), step(rank, 1), count(rank, 1);
  Size left = view.offset - was.offset;
  for (const size_t d : order) {
    if (was.sizes[d] <= 1) continue;
    start[d] = left / was.strides[d];
    left %= was.strides[d];
  }
  std::vector<Index> at(view.sizes.size());
  for (size_t v = 0; v < view.sizes.size(); ++v) {
    if (view.sizes[v] <= 1) continue;
    const auto fits = [&](size_t d) {
      return was.sizes[d] > 1 && count[d] == 1 && view.strides[v] % was.strides[d] == 0 &&
             start[d] + view.strides[v] / was.strides[d] * (view.sizes[v] - 1) < was.sizes[d];
    };
    const auto d = std::ranges::find_if(order, fits);
    if (d == order.end())
      return cannot("it writes a part of something through a view that is no slice of it");
    step[*d] = view.strides[v] / was.strides[*d];
    count[*d] = view.sizes[v];
    at[v] = quotient(Index::dimension(static_cast<int>(*d)) - Index(start[*d]), step[*d], was.sizes);
  }
  ExprId inside = exprs().integer(1, DType::kBool);
  for (size_t d = 0; d < rank; ++d) {
    const Index from = Index::dimension(static_cast<int>(d)) - Index(start[d]);
    inside =
        exprs().apply(Fn::kAnd, {inside, exprs().within(from, 0, (count[d] - 1) * step[d] + 1, was.sizes)});
    if (step[d] > 1)
      inside = exprs().apply(Fn::kAnd,
                             {inside, exprs().within(remainder(from, step[d], was.sizes), 0, 1, was.sizes)});
  }
  const ExprId body = exprs().apply(Fn::kWhere, {inside, load(made, at), load(base, dimensions(rank))});
  Node node{.sizes = was.sizes, .body = body, .name = graph_.tensors[static_cast<size_t>(made)].name};
  node.place = call_->place;
  current_[view.storage] = graph_.add_node(std::move(node), was.type, was.strides);
  graph_.tensors.back().offset = was.offset;
  return ok_status();
}

TensorId Importer::in_memory(trace::ValueId id, const std::string& name) {
  const TracedTensor& view = value(id);
  const auto holder = current(view.storage);
  if (holder) {
    const TensorId there = leaf_around(view, *holder);
    const Tensor& of = graph_.tensors[static_cast<size_t>(there)];
    if (of.type == view.dtype && of.sizes == view.sizes && of.offset == view.offset && of.shift == 0 &&
        of.strides == row_major(view.sizes))
      return there;
  }
  const ExprId body = read(id, dimensions(view.sizes.size()), view.sizes);
  return temporary(Reduction::kNone, view.sizes, {}, body, view.dtype, name);
}

TensorId Importer::add(Node node, DType type) {
  node.place = call_->place;
  node.tf32 = tf32_, node.under_flag = under_flag_;
  return graph_.add_node(std::move(node), type);
}

TensorId Importer::add_out(const Extents& sizes, DType type, std::string name) {
  const auto id = static_cast<TensorId>(graph_.tensors.size());
  graph_.tensors.push_back({.type = type,
                            .sizes = sizes,
                            .strides = row_major(sizes),
                            .node = static_cast<NodeId>(graph_.nodes.size()) - 1,
                            .name = std::move(name)});
  graph_.nodes.back().outs.push_back(id);
  return id;
}

TensorId Importer::temporary(Reduction reduction, const Extents& sizes, const Extents& reduced, ExprId body,
                             DType type, std::string name) {
  Node node{
      .sizes = sizes, .reduced = reduced, .reduction = reduction, .body = body, .name = std::move(name)};
  node.place = call_->place;
  node.tf32 = tf32_ && reduction == Reduction::kSum;
  node.under_flag = under_flag_ && reduction == Reduction::kSum;
  node.window = window_;
  if (reduction == Reduction::kNone) exprs().name(body, node.name);
  return graph_.add_node(std::move(node), type);
}

}  // namespace nereid::compiler
