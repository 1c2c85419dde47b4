#include "nereid/lm/engine/runner/sampler.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>

#include "nereid/base/check.h"
#include "nereid/lm/engine/runner/uniform.h"

namespace nereid::lm {
namespace {

// One number a row, as a column on the device: [rows, 1].
template <typename T, typename F>
at::Tensor column(const std::vector<DrawParameters>& parameters, const std::vector<int64_t>& rows,
                  at::Device device, F&& f) {
  std::vector<T> numbers;
  for (const int64_t row : rows) numbers.push_back(static_cast<T>(f(parameters[static_cast<size_t>(row)])));
  return at::tensor(numbers).unsqueeze(1).to(device);
}

struct Picked {
  at::Tensor tokens;    // [rows], int64
  at::Tensor logprobs;  // [rows], float64, under the distribution that was drawn from
};

// weights: [rows, n], float64, not scaled; uniforms: [rows, 1]. The first place whose running sum exceeds the
// uniform's share of all: it has a weight.
Picked invert(const at::Tensor& weights, const at::Tensor& uniforms) {
  const auto sums = weights.cumsum(1);
  const auto totals = sums.slice(1, -1);  // [rows, 1]
  const auto places = at::searchsorted(sums, uniforms * totals, /*out_int32=*/false, /*right=*/true)
                          .clamp_max_(weights.size(1) - 1);
  return {places.squeeze(1), (weights.gather(1, places) / totals).log().squeeze(1)};
}

// logits: [rows, vocab], float32.
Picked draw_from_all(const at::Tensor& logits, const at::Tensor& temperatures, const at::Tensor& uniforms) {
  return invert((logits.to(at::kDouble) / temperatures).softmax(1), uniforms);
}

// How tokens are cut, a number a row each: [rows, 1].
struct Cut {
  at::Tensor temperatures, uniforms, top_k, top_p, min_p;

  Cut rows(const at::Tensor& which) const {
    const auto of = [&](const at::Tensor& column) { return column.index_select(0, which); };
    return {of(temperatures), of(uniforms), of(top_k), of(top_p), of(min_p)};
  }
};

// sorted: [rows, n], the n largest logits, the largest first. Weights relative to the largest: [rows, n],
// float64, zeros after the k-th.
at::Tensor weights_of(const at::Tensor& sorted, const Cut& cut) {
  const auto wide = sorted.to(at::kDouble);
  return ((wide - wide.slice(1, 0, 1)) / cut.temperatures)
      .exp()
      .masked_fill(at::arange(sorted.size(1), sorted.options().dtype(at::kLong)).unsqueeze(0) >= cut.top_k,
                   0);
}

// total: [rows, 1], the sum of all weights that top_k leaves. The rest of the cut, and a draw from the
// remaining tokens.
Picked draw_from_weights(at::Tensor weights, const at::Tensor& total, const at::Tensor& order,
                         const Cut& cut) {
  // The share of those before a token decides whether it is still needed; the first always is.
  const auto before = weights.cumsum(1) - weights;
  weights.masked_fill_(before >= cut.top_p * total, 0);
  weights.masked_fill_(weights < cut.min_p * weights.slice(1, 0, 1), 0);
  auto picked = invert(weights, cut.uniforms);
  picked.tokens = order.gather(1, picked.tokens.unsqueeze(1)).squeeze(1);
  return picked;
}

Picked draw_sorted(const at::Tensor& logits, const Cut& cut) {
  const auto [sorted, order] = logits.sort(/*stable=*/true, /*dim=*/1, /*descending=*/true);
  const auto weights = weights_of(sorted, cut);
  return draw_from_weights(weights, weights.sum(1, /*keepdim=*/true), order, cut);
}

// Mostly a cut leaves few tokens, and a whole row need not be sorted to find them.
constexpr int64_t kCandidates = 1024;

// Places of the largest logits of each row, in order, of equals the lower first: [rows, n]. Each logit
// becomes a whole number of the same order, its place below: no two are equal, so which are found does not
// depend on how they are looked for.
at::Tensor largest(const at::Tensor& logits, int64_t n) {
  const auto bits = (logits + 0.0f).view(at::kInt);  // no -0
  const auto ordered = at::where(bits < 0, bits.bitwise_xor(0x7fffffff), bits).to(at::kLong);
  const auto places_from_the_end = at::arange(logits.size(1) - 1, -1, -1, logits.options().dtype(at::kLong));
  const auto found = std::get<0>((ordered * (int64_t{1} << 32) + places_from_the_end).topk(n, 1));
  return (logits.size(1) - 1) - found.bitwise_and(0xffffffffLL);
}

Picked draw_from_cut(const at::Tensor& logits, const Cut& cut) {
  if (logits.size(1) <= kCandidates) return draw_sorted(logits, cut);
  const auto order = largest(logits, kCandidates);
  const auto sorted = logits.gather(1, order);
  const auto weights = weights_of(sorted, cut);
  const auto all =
      ((logits.to(at::kDouble) - sorted.slice(1, 0, 1)) / cut.temperatures).exp().sum(1, /*keepdim=*/true);
  const auto total = at::where(cut.top_k <= kCandidates, weights.sum(1, /*keepdim=*/true), all);
  // Nothing after the candidates is left over where one of the cuts ends before them; of a larger top_k the
  // total is not known.
  const auto last = weights.slice(1, -1);
  const auto ends_before = (weights.sum(1, true) >= cut.top_p * total)
                               .logical_or(last < cut.min_p)
                               .logical_and(cut.top_k >= logits.size(1));
  const auto whole = (cut.top_k <= kCandidates).logical_or(ends_before).squeeze(1);
  auto picked = draw_from_weights(weights, total, order, cut);
  const auto missed = whole.logical_not().nonzero().squeeze(1);
  if (missed.size(0) > 0) {
    const auto again = draw_sorted(logits.index_select(0, missed), cut.rows(missed));
    picked.tokens.index_copy_(0, missed, again.tokens);
    picked.logprobs.index_copy_(0, missed, again.logprobs);
  }
  return picked;
}

// One row on a CPU, greedily or from the whole distribution, as below without libtorch's operators: dozens of
// microseconds each for one row.
struct DrawnRow {
  int64_t token;
  double logprob, drawn_logprob;
};
DrawnRow draw_row(const float* logits, int64_t size, const DrawParameters& parameters) {
  const auto largest = std::max_element(logits, logits + size) - logits;  // of equals the first
  double all = 0;
  for (int64_t i = 0; i < size; ++i) all += std::exp(static_cast<double>(logits[i]) - logits[largest]);
  const auto logprob = [&](int64_t token) {
    return static_cast<double>(logits[token]) - logits[largest] - std::log(all);
  };
  if (parameters.temperature <= 0) return {largest, logprob(largest), 0};
  const auto weight = [&](int64_t i) {
    return std::exp((static_cast<double>(logits[i]) - logits[largest]) / parameters.temperature);
  };
  double total = parameters.temperature == 1 ? all : 0;
  if (parameters.temperature != 1)
    for (int64_t i = 0; i < size; ++i) total += weight(i);
  const double wanted = uniform_at(parameters.seed, parameters.index) * total;
  double sum = 0;
  int64_t token = -1;
  for (int64_t i = 0; i < size && (token < 0 || sum <= wanted); ++i)
    if (const double own = weight(i); own > 0) sum += own, token = i;
  if (token < 0) token = largest;  // of logits that are no numbers
  return {token, logprob(token), std::log(weight(token) / total)};
}

bool has_cut(const DrawParameters& p) {
  return p.temperature > 0 && (p.top_k > 0 || p.top_p < 1 || p.min_p > 0);
}

Drawn draw_on_host(const at::Tensor& logits, const std::vector<DrawParameters>& parameters) {
  const size_t n = parameters.size();
  Drawn drawn{std::vector<int64_t>(n), std::vector<float>(n), std::vector<float>(n)};
  const auto put = [&](size_t i, int64_t token, double logprob, double drawn_logprob) {
    drawn.tokens[i] = token, drawn.logprobs[i] = static_cast<float>(logprob),
    drawn.drawn_logprobs[i] = static_cast<float>(drawn_logprob);
  };
  std::vector<int64_t> cut;
  std::vector<DrawParameters> cut_parameters;
  for (size_t i = 0; i < n; ++i) {
    if (has_cut(parameters[i])) {
      cut.push_back(static_cast<int64_t>(i)), cut_parameters.push_back(parameters[i]);
      continue;
    }
    const auto row = draw_row(logits.const_data_ptr<float>() + static_cast<int64_t>(i) * logits.size(1),
                              logits.size(1), parameters[i]);
    put(i, row.token, row.logprob, row.drawn_logprob);
  }
  if (cut.empty()) return drawn;
  const Drawn rest = draw(logits.index_select(0, at::tensor(cut)), cut_parameters);
  for (size_t i = 0; i < cut.size(); ++i)
    put(static_cast<size_t>(cut[i]), rest.tokens[i], rest.logprobs[i], rest.drawn_logprobs[i]);
  return drawn;
}

}  // namespace

Drawn draw(const at::Tensor& given, const std::vector<DrawParameters>& parameters) {
  const c10::NoGradGuard no_gradients;
  NEREID_CHECK(given.dim() == 2 && given.size(0) == static_cast<int64_t>(parameters.size()),
               "logits of {} rows, got {}", parameters.size(), given.size(0));
  const at::Tensor logits = given.to(at::kFloat);
  if (logits.is_cpu() && !std::all_of(parameters.begin(), parameters.end(), has_cut))
    return draw_on_host(logits.contiguous(), parameters);
  const auto device = logits.device();
  std::vector<int64_t> greedy, whole, cut;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& p = parameters[i];
    auto& kind = p.temperature <= 0 ? greedy : has_cut(p) ? cut : whole;
    kind.push_back(static_cast<int64_t>(i));
  }
  auto tokens = at::empty({logits.size(0)}, logits.options().dtype(at::kLong));
  auto drawn_logprobs = at::full({logits.size(0)}, 0.0, logits.options().dtype(at::kDouble));
  const auto rows_of = [&](const std::vector<int64_t>& rows) { return at::tensor(rows).to(device); };
  if (!greedy.empty()) {
    const auto rows = rows_of(greedy);
    tokens.index_copy_(0, rows, logits.index_select(0, rows).argmax(1));
  }
  for (const auto* kind : {&whole, &cut}) {
    if (kind->empty()) continue;
    const auto rows = rows_of(*kind);
    const auto own = kind->size() == parameters.size() ? logits : logits.index_select(0, rows);
    const auto of = [&](auto f) { return column<double>(parameters, *kind, device, f); };
    Cut all{.temperatures = of([](const auto& p) { return p.temperature; }),
            .uniforms = of([](const auto& p) { return uniform_at(p.seed, p.index); }),
            .top_k = {},
            .top_p = {},
            .min_p = {}};
    if (kind == &cut) {
      all.top_k = column<int64_t>(parameters, *kind, device,
                                  [&](const auto& p) { return p.top_k > 0 ? p.top_k : logits.size(1); });
      all.top_p = of([](const auto& p) { return p.top_p; });
      all.min_p = of([](const auto& p) { return p.min_p; });
    }
    const auto picked =
        kind == &whole ? draw_from_all(own, all.temperatures, all.uniforms) : draw_from_cut(own, all);
    tokens.index_copy_(0, rows, picked.tokens);
    drawn_logprobs.index_copy_(0, rows, picked.logprobs);
  }
  const auto logprobs = logits.gather(1, tokens.unsqueeze(1)).squeeze(1) - logits.logsumexp(1);

  // One transfer for all three.
  Drawn drawn;
  std::vector<at::Tensor> parts = {tokens.to(at::kDouble), logprobs.to(at::kDouble), drawn_logprobs};
  const auto host = at::stack(parts).cpu();
  const double* numbers = host.const_data_ptr<double>();
  const size_t n = parameters.size();
  for (size_t i = 0; i < n; ++i) {
    drawn.tokens.push_back(static_cast<int64_t>(numbers[i]));
    drawn.logprobs.push_back(static_cast<float>(numbers[n + i]));
    drawn.drawn_logprobs.push_back(static_cast<float>(numbers[2 * n + i]));
  }
  return drawn;
}

std::vector<std::vector<Likely>> likeliest(const at::Tensor& logits, const std::vector<int64_t>& counts) {
  const c10::NoGradGuard no_gradients;
  NEREID_CHECK(logits.dim() == 2 && logits.size(0) == std::ssize(counts), "logits of {} rows, got {}",
               counts.size(), logits.size(0));
  std::vector<std::vector<Likely>> likely(counts.size());
  std::vector<int64_t> asked;
  int64_t most = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    asked.push_back(static_cast<int64_t>(i));
    most = std::max(most, std::min(counts[i], logits.size(1)));
  }
  if (asked.empty()) return likely;
  const auto own = logits.index_select(0, at::tensor(asked).to(logits.device())).to(at::kFloat);
  const auto tokens = largest(own, most);  // [asked, most]
  const auto wide = own.to(at::kDouble);
  std::vector<at::Tensor> parts = {tokens.to(at::kDouble),
                                   wide.gather(1, tokens) - wide.logsumexp(1, /*keepdim=*/true)};
  const auto host = at::stack(parts).cpu();  // one transfer for both
  const double* numbers = host.const_data_ptr<double>();
  const double* logprobs = numbers + host.numel() / 2;
  for (const int64_t row : asked) {
    const auto place = static_cast<size_t>(row);
    for (int64_t k = 0; k < std::min(counts[place], most); ++k)
      likely[place].push_back({static_cast<int64_t>(numbers[k]), static_cast<float>(logprobs[k])});
    numbers += most, logprobs += most;
  }
  return likely;
}

}  // namespace nereid::lm
