#include "nereid/render/apart/steps_apart.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "nereid/render/apart/complex_apart.h"
#include "nereid/render/apart/flags_apart.h"
#include "nereid/render/apart/recurrent_apart.h"
#include "nereid/render/apart/reductions_apart.h"
#include "nereid/render/apart/resampling_apart.h"
#include "nereid/render/apart/windows_apart.h"

namespace nereid::render {
namespace {

// Of a call's operator, without its overload.
std::string_view base_of(std::string_view op) { return op.substr(0, op.find('.')); }

bool sum_apart(SimplerSteps& steps) { return count_apart(steps) || reduction_apart(steps); }

bool take_apart(Canonicalizer& to, const trace::Call& call) {
  static const std::map<std::string_view, bool (*)(SimplerSteps&)> kApart = {
      {"aten::convolution", convolution_apart},
      {"aten::max_pool1d", max_pool_apart},
      {"aten::max_pool2d", max_pool_apart},
      {"aten::max_pool3d", max_pool_apart},
      {"aten::max_pool2d_with_indices", max_pool_apart},
      {"aten::max_pool3d_with_indices", max_pool_apart},
      {"aten::avg_pool1d", avg_pool_apart},
      {"aten::avg_pool2d", avg_pool_apart},
      {"aten::avg_pool3d", avg_pool_apart},
      {"aten::_adaptive_avg_pool2d", adaptive_avg_pool_apart},
      {"aten::_adaptive_avg_pool3d", adaptive_avg_pool_apart},
      {"aten::adaptive_avg_pool1d", adaptive_avg_pool_apart},
      {"aten::lstm", recurrent_apart},
      {"aten::gru", recurrent_apart},
      {"aten::rnn_tanh", recurrent_apart},
      {"aten::rnn_relu", recurrent_apart},
      {"aten::upsample_linear1d", upsample_linear_apart},
      {"aten::upsample_bilinear2d", upsample_linear_apart},
      {"aten::upsample_trilinear3d", upsample_linear_apart},
      {"aten::upsample_nearest1d", upsample_nearest_apart},
      {"aten::upsample_nearest2d", upsample_nearest_apart},
      {"aten::upsample_nearest3d", upsample_nearest_apart},
      {"aten::gt", comparison_apart},
      {"aten::lt", comparison_apart},
      {"aten::ge", comparison_apart},
      {"aten::le", comparison_apart},
      {"aten::eq", comparison_apart},
      {"aten::ne", comparison_apart},
      {"aten::logical_and", logic_apart},
      {"aten::logical_or", logic_apart},
      {"aten::logical_not", logic_apart},
      {"aten::bitwise_and", logic_apart},
      {"aten::bitwise_or", logic_apart},
      {"aten::bitwise_not", logic_apart},
      {"aten::sign", sign_apart},
      {"aten::count_nonzero", count_apart},
      {"aten::sum", sum_apart},
      {"aten::mean", reduction_apart},
      {"aten::amax", reduction_apart},
      {"aten::amin", reduction_apart},
      {"aten::_fft_r2c", fourier_apart},
      {"aten::_fft_c2c", fourier_apart},
      {"aten::_fft_c2r", fourier_apart}};
  SimplerSteps steps(to, call);
  if (complex_apart(steps) || arithmetic_apart(steps)) return true;
  const auto found = kApart.find(base_of(call.op));
  return found != kApart.end() && found->second(steps);
}

// The step that makes this value, in which each element is the number.
trace::Call filling(const std::vector<trace::Value>& values, trace::ValueId id, double number) {
  return {.op = "aten::full",
          .args = {Canonicalizer::list_of(values[static_cast<size_t>(id)].sizes), {number}},
          .kwargs = {{"dtype", {trace::Named{"dtype", "f32"}}}, {"device", {trace::Named{"device", "cuda"}}}},
          .result = {trace::TensorRef{id}},
          .parts = {},
          .place = {"apart", 0}};
}

}  // namespace

std::optional<trace::Trace> steps_apart(const trace::Trace& trace, size_t phase,
                                        const std::vector<size_t>& steps) {
  const trace::Phase& forward = trace.phases[phase];
  constexpr size_t kMostSteps = 4000;
  const std::set<size_t> apart(steps.begin(), steps.end());
  Canonicalizer canonicalizer(trace, forward);
  size_t taken = 0;
  for (size_t i = 0; i < forward.steps.size(); ++i) {
    const auto* call = std::get_if<trace::Call>(&forward.steps[i]);
    if (call == nullptr) return std::nullopt;
    if (!apart.contains(i)) {
      canonicalizer.add(*call);
    } else if (take_apart(canonicalizer, *call)) {
      ++taken;
    } else {
      canonicalizer.add_canonical(*call);
    }
  }
  CanonicalSteps all = canonicalizer.take();
  if ((taken == 0 && !all.changed) || all.steps.size() > kMostSteps) return std::nullopt;
  trace::Trace result = trace;
  result.values = all.trace.values;
  for (size_t s = trace.storages.size(); s < all.trace.storages.size(); ++s)
    result.storages.push_back(std::move(all.trace.storages[s]));
  auto& to = result.phases[phase].steps;
  to.clear();
  for (const auto& [id, number] : all.numbers) to.emplace_back(filling(all.trace.values, id, number));
  int line = 0;
  for (const size_t step : all.steps) {
    auto& call = std::get<trace::Call>(all.forward.steps[step]);
    call.place = {"apart", ++line};  // a line each: what is asked about is one step
    to.emplace_back(std::move(call));
  }
  return result;
}

}  // namespace nereid::render
