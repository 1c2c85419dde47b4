// What the trace's storages and values hold: reads of them as expressions, definitions of results, and writes
// through views.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "nereid/compiler/import/import.h"
#include "nereid/compiler/ir/constant_data.h"

namespace nereid::compiler {
namespace {

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
  // A constant that the file writes down, or an attribute that is kept (forward_text.h), as a whole.
  const bool is_constant = role.role == trace::Role::kConstant && !role.data.empty(),
             is_attribute = role.role == trace::Role::kTemporary && !role.name.empty();
  if (!found && (is_constant || is_attribute))
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
  return graph_.add_node(without_empty_reduction(std::move(node)), type, {}, out);
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
  node = without_empty_reduction(std::move(node));
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
  ExprId inside = exprs().integer(1, DType::kBool);
  // A step in two dimensions at once: the view is a diagonal.
  const auto on_diagonal = [&](size_t v) {
    for (size_t a = 0; a < rank; ++a)
      for (size_t b = a + 1; b < rank; ++b) {
        const int64_t most = std::min(was.sizes[a] - start[a], was.sizes[b] - start[b]);
        if (count[a] != 1 || count[b] != 1 || view.strides[v] != was.strides[a] + was.strides[b] ||
            view.sizes[v] > most)
          continue;
        count[a] = count[b] = view.sizes[v];
        at[v] = Index::dimension(static_cast<int>(a)) - Index(start[a]);
        const Index apart = at[v] - (Index::dimension(static_cast<int>(b)) - Index(start[b]));
        inside = exprs().apply(Fn::kAnd, {inside, exprs().within(apart, 0, 1, was.sizes)});
        return true;
      }
    return false;
  };
  for (size_t v = 0; v < view.sizes.size(); ++v) {
    if (view.sizes[v] <= 1) continue;
    const auto fits = [&](size_t d) {
      return was.sizes[d] > 1 && count[d] == 1 && view.strides[v] % was.strides[d] == 0 &&
             start[d] + view.strides[v] / was.strides[d] * (view.sizes[v] - 1) < was.sizes[d];
    };
    const auto d = std::ranges::find_if(order, fits);
    if (d == order.end() && on_diagonal(v)) continue;
    if (d == order.end())
      return cannot("it writes a part of something through a view that is not a slice of it");
    step[*d] = view.strides[v] / was.strides[*d];
    count[*d] = view.sizes[v];
    at[v] = quotient(Index::dimension(static_cast<int>(*d)) - Index(start[*d]), step[*d], was.sizes);
  }
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

TensorId Importer::add(Node node, DType type, Extents sizes) {
  node.place = call_->place;
  node.tf32 = tf32_, node.under_flag = under_flag_;
  return graph_.add_node(std::move(node), type, {}, std::move(sizes));
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
  return graph_.add_node(without_empty_reduction(std::move(node)), type);
}

}  // namespace nereid::compiler
