// Operators whose results are in the storage of what they are given.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "nereid/lm/plan_sizes/step_call.h"

namespace nereid::lm {
namespace {

StepResults one_view(const Value& of, Layout layout) {
  return std::vector<Value>{view_value(of, std::move(layout))};
}

// The sizes that are asked for, a -1 among them computed.
std::optional<Sizes> inferred(Sizes sizes, const Sizes& from) {
  int64_t elements = std::accumulate(from.begin(), from.end(), int64_t{1}, std::multiplies<>());
  const auto unknown = std::ranges::find(sizes, -1);
  int64_t known = 1;
  for (auto at = sizes.begin(); at != sizes.end(); ++at) {
    if (at == unknown) continue;
    if (*at < 0) return std::nullopt;
    known *= *at;
  }
  if (unknown == sizes.end()) return known == elements ? std::optional(sizes) : std::nullopt;
  if (known == 0 || elements % known != 0) return std::nullopt;
  *unknown = elements / known;
  return sizes;
}

StepResults view(const StepCall& call) {
  const Value& x = *call.tensor(0);
  const auto asked = call.sizes(0);
  if (!asked) return std::nullopt;
  auto sizes = inferred(*asked, x.sizes());
  if (!sizes) return std::nullopt;
  auto strides = view_strides(*x.layout, *sizes);
  if (!strides) return std::nullopt;
  return one_view(x,
                  {.sizes = std::move(*sizes), .strides = std::move(*strides), .offset = x.layout->offset});
}

StepResults same(const StepCall& call) {
  const Value& x = *call.tensor(0);
  return one_view(x, *x.layout);
}

StepResults permuted(const Value& x, const std::vector<size_t>& order) {
  Layout made{.sizes = {}, .strides = {}, .offset = x.layout->offset};
  for (const size_t axis : order) {
    made.sizes.push_back(x.layout->sizes[axis]);
    made.strides.push_back(x.layout->strides[axis]);
  }
  return one_view(x, std::move(made));
}

StepResults permute(const StepCall& call) {
  const Value& x = *call.tensor(0);
  const auto asked = call.sizes(0);
  const size_t rank = x.sizes().size();
  if (!asked || asked->size() != rank) return std::nullopt;
  std::vector<size_t> order;
  for (const int64_t axis : *asked) {
    const auto own = axis_of(axis, rank);
    if (!own || std::ranges::find(order, *own) != order.end()) return std::nullopt;
    order.push_back(*own);
  }
  return permuted(x, order);
}

StepResults swapped(const Value& x, int64_t a, int64_t b) {
  const size_t rank = x.sizes().size();
  const auto first = axis_of(a, rank), second = axis_of(b, rank);
  if (!first || !second || rank == 0)
    return rank == 0 && first && second ? one_view(x, *x.layout) : std::nullopt;
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[*first], order[*second]);
  return permuted(x, order);
}

StepResults transpose(const StepCall& call) {
  const auto a = call.whole(0), b = call.whole(1);
  return a && b ? swapped(*call.tensor(0), *a, *b) : std::nullopt;
}

StepResults matrix_transpose(const StepCall& call) {
  const Value& x = *call.tensor(0);
  if (x.sizes().size() > 2) return std::nullopt;
  return x.sizes().size() < 2 ? one_view(x, *x.layout) : swapped(x, 0, 1);
}

StepResults unsqueeze(const StepCall& call) {
  const Value& x = *call.tensor(0);
  const auto asked = call.whole(0);
  const auto axis = asked ? axis_of(*asked, x.sizes().size() + 1) : std::nullopt;
  if (!axis) return std::nullopt;
  Layout made = *x.layout;
  const bool last = *axis == made.sizes.size();
  const int64_t stride = last ? 1 : made.sizes[*axis] * made.strides[*axis];
  made.sizes.insert(made.sizes.begin() + static_cast<std::ptrdiff_t>(*axis), 1);
  made.strides.insert(made.strides.begin() + static_cast<std::ptrdiff_t>(*axis), stride);
  return one_view(x, std::move(made));
}

StepResults squeeze(const StepCall& call) {
  const Value& x = *call.tensor(0);
  const size_t rank = x.sizes().size();
  std::vector<bool> gone(rank, false);
  const auto list = call.sizes(0);
  const auto axis = call.whole(0);
  if (list || axis) {
    for (const int64_t each : list ? *list : Sizes{*axis}) {
      const auto own = axis_of(each, rank);
      if (!own) return std::nullopt;
      if (rank > 0) gone[*own] = true;
    }
  } else {
    gone.assign(rank, true);
  }
  Layout made{.sizes = {}, .strides = {}, .offset = x.layout->offset};
  for (size_t d = 0; d < rank; ++d) {
    if (gone[d] && x.sizes()[d] == 1) continue;
    made.sizes.push_back(x.sizes()[d]);
    made.strides.push_back(x.layout->strides[d]);
  }
  return one_view(x, std::move(made));
}

StepResults expand(const StepCall& call) {
  const Value& x = *call.tensor(0);
  const auto asked = call.sizes(0);
  if (!asked || asked->size() < x.sizes().size()) return std::nullopt;
  Layout made{.sizes = *asked, .strides = Sizes(asked->size(), 0), .offset = x.layout->offset};
  const size_t begin = asked->size() - x.sizes().size();
  for (size_t d = 0; d < asked->size(); ++d) {
    int64_t& size = made.sizes[d];
    const int64_t own = d < begin ? 1 : x.sizes()[d - begin];
    if (size == -1 && d >= begin) size = own;
    if (size < 0 || (own != 1 && own != size)) return std::nullopt;
    if (d >= begin && own == size) made.strides[d] = x.layout->strides[d - begin];
  }
  return one_view(x, std::move(made));
}

// Elements `begin` to `end` of an axis, every `step`-th.
Value part(const Value& x, size_t axis, int64_t begin, int64_t end, int64_t step = 1) {
  Layout made = *x.layout;
  made.offset += begin * made.strides[axis];
  made.sizes[axis] = (end - begin + step - 1) / step;
  made.strides[axis] *= step;
  return view_value(x, std::move(made));
}

StepResults slice(const StepCall& call) {
  const Value& x = *call.tensor(0);
  const auto asked = call.whole(0), from = call.whole(1), to = call.whole(2);
  const auto axis = asked ? axis_of(*asked, x.sizes().size()) : std::nullopt;
  const int64_t step = call.whole(3).value_or(1);
  if (!axis || !from || !to || x.sizes().empty() || step < 1) return std::nullopt;
  const int64_t length = x.sizes()[*axis];
  const auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + length : at, 0, length); };
  const int64_t begin = place(*from);
  return std::vector<Value>{part(x, *axis, begin, std::max(begin, place(*to)), step)};
}

StepResults narrow(const StepCall& call) {
  const Value& x = *call.tensor(0);
  const auto asked = call.whole(0), from = call.whole(1), length = call.whole(2);
  const auto axis = asked ? axis_of(*asked, x.sizes().size()) : std::nullopt;
  if (!axis || !from || !length || x.sizes().empty()) return std::nullopt;
  const int64_t begin = *from < 0 ? *from + x.sizes()[*axis] : *from;
  if (begin < 0 || *length < 0 || begin + *length > x.sizes()[*axis]) return std::nullopt;
  return std::vector<Value>{part(x, *axis, begin, begin + *length)};
}

Value selected(const Value& x, size_t axis, int64_t index) {
  Layout made = *x.layout;
  const auto at = static_cast<std::ptrdiff_t>(axis);
  made.offset += index * made.strides[axis];
  made.sizes.erase(made.sizes.begin() + at);
  made.strides.erase(made.strides.begin() + at);
  return view_value(x, std::move(made));
}

StepResults select(const StepCall& call) {
  const Value& x = *call.tensor(0);
  const auto asked = call.whole(0), index = call.whole(1);
  const auto axis = asked ? axis_of(*asked, x.sizes().size()) : std::nullopt;
  if (!axis || !index || x.sizes().empty()) return std::nullopt;
  const auto place = axis_of(*index, static_cast<size_t>(x.sizes()[*axis]));
  if (!place || x.sizes()[*axis] == 0) return std::nullopt;
  return std::vector<Value>{selected(x, *axis, static_cast<int64_t>(*place))};
}

StepResults unbind(const StepCall& call) {
  const Value& x = *call.tensor(0);
  const auto axis = axis_of(call.whole(0).value_or(0), x.sizes().size());
  if (!axis || x.sizes().empty()) return std::nullopt;
  std::vector<Value> made;
  for (int64_t i = 0; i < x.sizes()[*axis]; ++i) made.push_back(selected(x, *axis, i));
  return made;
}

StepResults parts(const Value& x, std::optional<size_t> axis, const std::function<int64_t(size_t)>& length) {
  if (!axis || x.sizes().empty()) return std::nullopt;
  std::vector<Value> made;
  for (int64_t at = 0; at < x.sizes()[*axis];) {
    const int64_t end = std::min(at + length(made.size()), x.sizes()[*axis]);
    if (end <= at) return std::nullopt;
    made.push_back(part(x, *axis, at, end));
    at = end;
  }
  return made;
}

StepResults chunk(const StepCall& call) {
  const Value& x = *call.tensor(0);
  const auto count = call.whole(0);
  const auto axis = axis_of(call.whole(1).value_or(0), x.sizes().size());
  if (!count || *count < 1 || !axis || x.sizes().empty()) return std::nullopt;
  const int64_t length = (x.sizes()[*axis] + *count - 1) / *count;
  return parts(x, axis, [&](size_t) { return length; });
}

StepResults split(const StepCall& call) {
  const Value& x = *call.tensor(0);
  const auto length = call.whole(0);
  if (!length || *length < 1) return std::nullopt;
  return parts(x, axis_of(call.whole(1).value_or(0), x.sizes().size()), [&](size_t) { return *length; });
}

StepResults split_with_sizes(const StepCall& call) {
  const Value& x = *call.tensor(0);
  const auto lengths = call.sizes(0);
  if (!lengths) return std::nullopt;
  const auto made = parts(x, axis_of(call.whole(0).value_or(0), x.sizes().size()),
                          [&](size_t i) { return i < lengths->size() ? (*lengths)[i] : 0; });
  return made && made->size() == lengths->size() ? made : std::nullopt;
}

StepResults diagonal(const StepCall& call) {
  const Value& x = *call.tensor(0);
  const size_t rank = x.sizes().size();
  const int64_t offset = call.whole(0).value_or(0);
  const auto a = axis_of(call.whole(1).value_or(0), rank), b = axis_of(call.whole(2).value_or(1), rank);
  if (!a || !b || rank < 2 || *a == *b) return std::nullopt;
  const int64_t length = offset >= 0 ? std::min(x.sizes()[*a], x.sizes()[*b] - offset)
                                     : std::min(x.sizes()[*a] + offset, x.sizes()[*b]);
  Layout made{.sizes = {}, .strides = {}, .offset = x.layout->offset};
  if (length > 0)
    made.offset += offset >= 0 ? offset * x.layout->strides[*b] : -offset * x.layout->strides[*a];
  for (size_t d = 0; d < rank; ++d) {
    if (d == *a || d == *b) continue;
    made.sizes.push_back(x.sizes()[d]);
    made.strides.push_back(x.layout->strides[d]);
  }
  made.sizes.push_back(std::max<int64_t>(length, 0));
  made.strides.push_back(x.layout->strides[*a] + x.layout->strides[*b]);
  return one_view(x, std::move(made));
}

StepResults unfold(const StepCall& call) {
  const Value& x = *call.tensor(0);
  const auto asked = call.whole(0), size = call.whole(1), step = call.whole(2);
  const auto axis = asked ? axis_of(*asked, x.sizes().size()) : std::nullopt;
  if (!axis || !size || !step || *step < 1 || x.sizes().empty() || *size > x.sizes()[*axis])
    return std::nullopt;
  Layout made = *x.layout;
  made.sizes[*axis] = (made.sizes[*axis] - *size) / *step + 1;
  made.sizes.push_back(*size);
  made.strides.push_back(made.strides[*axis]);
  made.strides[*axis] *= *step;
  return one_view(x, std::move(made));
}

}  // namespace

StepResults view_results(const StepCall& call) {
  static const std::unordered_map<std::string_view, StepResults (*)(const StepCall&)> kRules = {
      {"view", view},          {"_unsafe_view", view},   {"reshape", view},
      {"alias", same},         {"detach", same},         {"permute", permute},
      {"t", matrix_transpose}, {"transpose", transpose}, {"unsqueeze", unsqueeze},
      {"squeeze", squeeze},    {"expand", expand},       {"slice", slice},
      {"narrow", narrow},      {"select", select},       {"unbind", unbind},
      {"chunk", chunk},        {"split", split},         {"split_with_sizes", split_with_sizes},
      {"diagonal", diagonal},  {"unfold", unfold}};
  if (call.tensor(0) == nullptr) return std::nullopt;
  if (const auto rule = kRules.find(call.name); rule != kRules.end()) return rule->second(call);
  // In place: relu_, add_; not __rshift__, nor squeeze_, which changes the sizes.
  const bool in_place = call.name.ends_with('_') && !call.name.ends_with("__") &&
                        !kRules.contains(std::string_view(call.name).substr(0, call.name.size() - 1));
  return in_place ? same(call) : std::nullopt;
}

}  // namespace nereid::lm
