#include "nereid/ops/calls.h"

#include <charconv>

#include "nereid/ops/calls_impl.h"

namespace nereid::ops {

Arg Calling::constant(char which) const {
  const std::string_view text = constant_of(applied, which);
  const char* end = text.data() + text.size();
  if (text.find_first_of(".e") == text.npos) {
    int64_t value = 0;
    std::from_chars(text.data(), end, value);
    return arg(value);
  }
  double value = 0;
  std::from_chars(text.data(), end, value);
  return arg(value);
}

Sizes Calling::out() const { return {applied.out.dims.begin(), applied.out.dims.begin() + applied.out.rank}; }

Tensor Calling::elementwise(std::string_view op, std::initializer_list<Tensor> operands,
                            std::vector<Arg> more, DType type) {
  std::vector<Laid> lie;
  std::vector<Arg> args;
  for (const Tensor tensor : operands) lie.push_back(to.laid(tensor)), args.push_back(arg(tensor));
  for (Arg& one : more) args.push_back(std::move(one));
  return to.call(op, std::move(args), to.made(ops::elementwise(lie), type));
}

Tensor Calling::fresh(std::string_view op, std::vector<Arg> args, const Sizes& sizes, Recording::Named named,
                      DType type) {
  return to.call(op, std::move(args), to.made(sizes, type), std::move(named));
}

Tensor Calling::contiguous(Tensor tensor) {
  if (is_row_major(to.laid(tensor))) return tensor;
  return fresh("clone", {arg(tensor)}, to.laid(tensor).sizes,
               {{"memory_format", named("memory_format", "contiguous_format")}}, to.type(tensor));
}

Tensor Calling::reshape(Tensor tensor, const Sizes& sizes, const Sizes& requested) {
  const bool view = can_be_seen_as(to.laid(tensor), sizes);
  return look_as(view ? "view" : "_unsafe_view", view ? tensor : contiguous(tensor), sizes, requested);
}

Tensor Calling::look_as(std::string_view op, Tensor tensor, const Sizes& sizes, const Sizes& requested) {
  return to.call(op, {arg(tensor), integers(requested)},
                 to.look(tensor, {sizes, strides_after_view(to.laid(tensor), sizes)}));
}

Tensor Calling::expand(Tensor tensor, const Sizes& sizes) {
  return to.call("expand", {arg(tensor), integers(sizes)}, to.look(tensor, expanded(to.laid(tensor), sizes)));
}

Tensor Calling::transpose(Tensor tensor, size_t a, size_t b, std::string_view op, std::vector<Arg> more) {
  Laid lies = to.laid(tensor);
  std::swap(lies.sizes[a], lies.sizes[b]), std::swap(lies.strides[a], lies.strides[b]);
  more.insert(more.begin(), arg(tensor));
  return to.call(op, std::move(more), to.look(tensor, std::move(lies)));
}

std::optional<Tensor> record(Recording& to, const Applied& applied, Spelling spelling,
                             std::span<const Tensor> operands, std::span<const Tensor> own) {
  static const Records records = [] {
    Records made;
    add_pointwise_records(made);
    add_reduction_records(made);
    add_layout_records(made);
    add_layer_records(made);
    add_contraction_records(made);
    add_loss_records(made);
    return made;
  }();
  const auto found = records.find(applied.op->name);
  if (found == records.end()) return std::nullopt;
  Calling calling{to, applied, spelling, operands, own};
  return found->second(calling);
}

}  // namespace nereid::ops
