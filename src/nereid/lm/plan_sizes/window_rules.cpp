// Operators that see windows of their input: convolutions, pools, padding, resampling.
#include <algorithm>
#include <unordered_map>

#include "nereid/lm/plan_sizes/step_call.h"

namespace nereid::lm {
namespace {

StepResults one_new(Sizes sizes) {
  if (std::ranges::any_of(sizes, [](int64_t size) { return size < 0; })) return std::nullopt;
  return std::vector<Value>{new_value(row_major_layout(std::move(sizes)))};
}

// A number for each axis: one number stands for all.
std::optional<Sizes> each_axis(std::optional<Sizes> list, size_t rank, int64_t otherwise) {
  if (!list || list->empty()) return Sizes(rank, otherwise);
  if (list->size() == 1) return Sizes(rank, list->front());
  return list->size() == rank ? list : std::nullopt;
}

StepResults convolution(const StepCall& call) {
  const auto tensors = call.tensors();
  const auto groups = call.whole(0);
  if (tensors.size() < 2 || !groups || *groups < 1) return std::nullopt;
  const Sizes &x = tensors[0]->sizes(), &weight = tensors[1]->sizes();
  if (x.size() < 3 || weight.size() != x.size()) return std::nullopt;
  const size_t rank = x.size() - 2;
  const auto stride = each_axis(call.sizes(0), rank, 1), padding = each_axis(call.sizes(1), rank, 0),
             dilation = each_axis(call.sizes(2), rank, 1), more = each_axis(call.sizes(3), rank, 0);
  if (!stride || !padding || !dilation || !more || !call.sizes(3)) return std::nullopt;
  const bool transposed = call.has("transposed");
  if (transposed ? weight[0] != x[1] : weight[1] * *groups != x[1]) return std::nullopt;
  Sizes made = {x[0], transposed ? weight[1] * *groups : weight[0]};
  for (size_t d = 0; d < rank; ++d) {
    if ((*stride)[d] < 1) return std::nullopt;
    const int64_t reach = (*dilation)[d] * (weight[2 + d] - 1);
    const int64_t room = x[2 + d] + 2 * (*padding)[d] - reach - 1;
    made.push_back(transposed ? (x[2 + d] - 1) * (*stride)[d] - 2 * (*padding)[d] + reach + (*more)[d] + 1
                   : room < 0 ? -1
                              : room / (*stride)[d] + 1);
  }
  return one_new(std::move(made));
}

// The number of axes that an operator's name says, as of avg_pool2d.
size_t axes_of(const std::string& name) {
  const size_t d = name.find('d', name.find_first_of("123"));
  return d == name.npos || d == 0 ? 0 : static_cast<size_t>(name[d - 1] - '0');
}

std::optional<Sizes> pooled(const StepCall& call) {
  const size_t rank = axes_of(call.name);
  const bool average = call.name.find("avg") != std::string::npos, up = call.has("ceil_mode");
  Sizes sizes = call.tensor(0)->sizes();
  const auto kernel = each_axis(call.sizes(0), rank, 1);
  if (rank < 1 || rank > 3 || sizes.size() < rank || !kernel || !call.sizes(0)) return std::nullopt;
  const auto asked = call.sizes(1);
  const auto stride = asked && !asked->empty() ? each_axis(asked, rank, 1) : kernel;
  const auto padding = each_axis(call.sizes(2), rank, 0),
             dilation = average ? Sizes(rank, 1) : each_axis(call.sizes(3), rank, 1);
  if (!stride || !padding || !dilation) return std::nullopt;
  for (size_t d = 0; d < rank; ++d) {
    int64_t& size = sizes[sizes.size() - rank + d];
    const int64_t length = size, step = (*stride)[d];
    const int64_t room = length + 2 * (*padding)[d] - (*dilation)[d] * ((*kernel)[d] - 1) - 1;
    if (step < 1 || room < 0) return std::nullopt;
    size = (room + (up ? step - 1 : 0)) / step + 1;
    if (up && (size - 1) * step >= length + (*padding)[d]) --size;
  }
  return sizes;
}

StepResults pool(const StepCall& call) {
  auto sizes = pooled(call);
  return sizes ? one_new(std::move(*sizes)) : std::nullopt;
}

StepResults twice(StepResults made) {
  if (made) made->push_back(new_value(*made->front().layout));
  return made;
}

StepResults pool_with_indices(const StepCall& call) { return twice(pool(call)); }

// The last axes get the sizes that the call names.
StepResults resized(const StepCall& call) {
  Sizes sizes = call.tensor(0)->sizes();
  const auto asked = call.sizes(0);
  if (!asked || asked->empty() || asked->size() != axes_of(call.name) || asked->size() > sizes.size())
    return std::nullopt;
  std::ranges::copy(*asked, sizes.end() - std::ssize(*asked));
  return one_new(std::move(sizes));
}

StepResults resized_with_indices(const StepCall& call) { return twice(resized(call)); }

StepResults padded(const StepCall& call) {
  Sizes sizes = call.tensor(0)->sizes();
  const auto pads = call.sizes(0);
  if (!pads || pads->size() % 2 != 0 || pads->size() / 2 > sizes.size()) return std::nullopt;
  for (size_t d = 0; d < pads->size() / 2; ++d)
    sizes[sizes.size() - 1 - d] += (*pads)[2 * d] + (*pads)[2 * d + 1];
  return one_new(std::move(sizes));
}

// [..., channels, height, width], `factor` of both in the channels, or the other way round.
StepResults shuffled(const StepCall& call, bool back) {
  Sizes sizes = call.tensor(0)->sizes();
  const auto factor = call.whole(0);
  if (!factor || *factor < 1 || sizes.size() < 3) return std::nullopt;
  auto* last = sizes.data() + sizes.size() - 3;
  const int64_t area = *factor * *factor;
  if (back ? last[1] % *factor != 0 || last[2] % *factor != 0 : last[0] % area != 0) return std::nullopt;
  last[0] = back ? last[0] * area : last[0] / area;
  for (size_t d = 1; d < 3; ++d) last[d] = back ? last[d] / *factor : last[d] * *factor;
  return one_new(std::move(sizes));
}

StepResults pixel_shuffle(const StepCall& call) { return shuffled(call, false); }
StepResults pixel_unshuffle(const StepCall& call) { return shuffled(call, true); }

}  // namespace

StepResults window_results(const StepCall& call) {
  static const std::unordered_map<std::string_view, StepResults (*)(const StepCall&)> kRules = [] {
    std::unordered_map<std::string_view, StepResults (*)(const StepCall&)> rules = {
        {"convolution", convolution},
        {"constant_pad_nd", padded},
        {"pixel_shuffle", pixel_shuffle},
        {"pixel_unshuffle", pixel_unshuffle},
        {"max_pool1d", pool}};
    for (const char* name : {"avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool2d", "max_pool3d"})
      rules.emplace(name, pool);
    for (const char* name : {"max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices"})
      rules.emplace(name, pool_with_indices);
    for (const char* name :
         {"adaptive_avg_pool1d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "upsample_nearest1d",
          "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
          "_upsample_nearest_exact2d", "upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d",
          "upsample_trilinear3d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"})
      rules.emplace(name, resized);
    for (const char* name : {"adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"})
      rules.emplace(name, resized_with_indices);
    for (const char* name : {"reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d",
                             "replication_pad2d", "replication_pad3d"})
      rules.emplace(name, padded);
    return rules;
  }();
  const auto rule = kRules.find(call.name);
  return rule == kRules.end() || call.tensor(0) == nullptr ? std::nullopt : rule->second(call);
}

}  // namespace nereid::lm
