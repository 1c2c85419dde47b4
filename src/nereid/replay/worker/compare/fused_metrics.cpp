#include "nereid/replay/worker/compare/fused_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "nereid/replay/worker/operators.h"

namespace nereid::replay {
namespace {

using kernels::Kernel;

constexpr int64_t kMetricBlocks = 2112;  // at most: a fixed number, so that no GPU's size changes a sum
constexpr int64_t kSumBlocks = 4096;
constexpr int64_t kValueBlocks = 1024;
constexpr int64_t kMinSpan = 4096;  // elements that a block is worth
constexpr int64_t kMaxColumns =
    65536;  // groups of longer periods are at least kMaxColumns / 4096 elements long
constexpr int64_t kColumnThreads = int64_t{1} << 18;
constexpr int64_t kMinRows = 16;     // that a thread of the columns kernel adds up
constexpr int64_t kMinPiece = 1024;  // elements whose sums are worth a block

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

kernels::ElementType element_type(c10::ScalarType type) {
  switch (type) {
    case c10::kDouble:
      return kernels::kFloat64;
    case c10::kFloat:
      return kernels::kFloat32;
    case c10::kHalf:
      return kernels::kFloat16;
    case c10::kBFloat16:
      return kernels::kBFloat16;
    case c10::kFloat8_e4m3fn:
      return kernels::kFloat8E4M3FN;
    default:
      return kernels::kFloat8E5M2;
  }
}

kernels::Elements elements(const at::Tensor& tensor) {
  TORCH_CHECK(FusedMetrics::reads(tensor.scalar_type()) && tensor.is_contiguous(),
              "error metrics: expected contiguous floating-point elements, got ", tensor.scalar_type());
  return {tensor.const_data_ptr(), element_type(tensor.scalar_type())};
}

kernels::Inputs inputs(const ElementRange& s, const at::Tensor& answer) {
  return {elements(answer.defined() ? answer : s.own),
          elements(s.own),
          elements(s.truth),
          s.agreed.defined() ? static_cast<const unsigned char*>(s.agreed.const_data_ptr()) : nullptr,
          s.largest,
          s.truth.numel()};
}

at::Tensor workspace(int64_t bytes, const at::Tensor& like) {
  return at::empty({bytes}, like.options().dtype(c10::kByte));
}

// Elements of each of at most `most` blocks.
int64_t span_of(int64_t count, int64_t most, int64_t least) {
  return std::max(least, divide_up(count, most));
}

}  // namespace

bool FusedMetrics::reads(c10::ScalarType type) {
  return type == c10::kDouble || type == c10::kFloat || type == c10::kHalf || type == c10::kBFloat16 ||
         type == c10::kFloat8_e4m3fn || type == c10::kFloat8_e5m2;
}

template <typename Part>
std::vector<Part> FusedMetrics::parts(Kernel kernel, kernels::MetricParameters p,
                                      const at::Tensor& like) const {
  p.span = span_of(p.in.count, kMetricBlocks, kMinSpan);
  const auto blocks = divide_up(p.in.count, p.span);
  std::vector<Part> out(static_cast<size_t>(blocks));
  if (blocks == 0) return out;
  const auto made = workspace(blocks * static_cast<int64_t>(sizeof(Part)), like);
  p.parts = made.mutable_data_ptr();
  launch(kernel, blocks, p);
  const auto here = made.cpu();
  std::memcpy(out.data(), here.const_data_ptr(), out.size() * sizeof(Part));
  return out;
}

FusedMetrics::ScaleStatistics FusedMetrics::scale_statistics(const ElementRange& s) const {
  ScaleStatistics sum;
  for (const auto& part : parts<kernels::ScalePart>(Kernel::kScale, {.in = inputs(s, {})}, s.truth)) {
    sum.scale.add({part.squared, part.count, part.undefined});
    sum.truth.add({part.truth_squared, part.truth_finite, 0});
    sum.own_finite += part.own_finite;
  }
  return sum;
}

ReferenceError FusedMetrics::own_error(const ElementRange& s, const at::Tensor& other, double scale) const {
  ReferenceError sum;
  for (const auto& part : parts<kernels::ReferencePart>(Kernel::kReferenceError,
                                                        {.in = inputs(s, other), .scale = scale}, s.truth))
    sum.add({part.largest, part.squared});
  return sum;
}

namespace {
void add_part(CandidateError& sum, const kernels::CandidatePart& part) {
  sum.add({part.wrong, part.first, part.worst, part.largest, part.absolute, part.relative, part.squared}, 0);
}
}  // namespace

CandidateError FusedMetrics::got_error(const kernels::MetricParameters& parameters,
                                       const at::Tensor& like) const {
  CandidateError sum;
  for (const auto& part : parts<kernels::CandidatePart>(Kernel::kCandidateError, parameters, like))
    add_part(sum, part);
  return sum;
}

FusedMetrics::ErrorPair FusedMetrics::error_pair(const ElementRange& s, double scale) const {
  ErrorPair sum;
  for (const auto& part : parts<kernels::ErrorParts>(
           Kernel::kErrorPair, {.in = inputs(s, s.got), .scale = scale, .limit = kInfinity}, s.truth))
    sum.own.add({part.own.largest, part.own.squared}), add_part(sum.got, part.got);
  return sum;
}

ErrorTail FusedMetrics::tail(const ElementRange& s, const at::Tensor& answer, double scale,
                             const at::Tensor& errors) const {
  static_assert(ErrorTail::kPowers == kernels::kPowers);
  const auto counts = at::zeros({kernels::kPowers}, s.truth.options().dtype(c10::kLong));
  kernels::TailParameters p{.in = inputs(s, answer), .scale = scale};
  p.span = span_of(p.in.count, kMetricBlocks, kMinSpan);
  p.counts = reinterpret_cast<unsigned long long*>(counts.mutable_data_ptr<int64_t>());
  if (errors.defined()) p.errors = errors.mutable_data_ptr<float>();
  if (p.in.count > 0) launch(Kernel::kTail, divide_up(p.in.count, p.span), p);
  const auto here = counts.cpu();
  ErrorTail tail;
  int64_t sum = 0;
  for (size_t k = 0; k < tail.counts.size(); ++k) tail.counts[k] = sum += here.const_data_ptr<int64_t>()[k];
  return tail;
}

bool FusedMetrics::all_close(const at::Tensor& first, const at::Tensor& second, double rtol, double atol,
                             bool equal_nan) const {
  const auto others = at::zeros({1}, first.options().dtype(c10::kLong));
  kernels::CloseParameters p{
      .first = elements(first),
      .second = elements(second),
      .count = first.numel(),
      .span = span_of(first.numel(), kMetricBlocks, kMinSpan),
      .second_stride = second.numel() == 1 ? 0 : 1,
      .rtol = rtol,
      .atol = atol,
      .equal_nan = equal_nan,
      .others = reinterpret_cast<unsigned long long*>(others.mutable_data_ptr<int64_t>())};
  if (p.count > 0) launch(Kernel::kClose, divide_up(p.count, p.span), p);
  return others.item().toLong() == 0;
}

CandidateError FusedMetrics::scaled_error(const ElementRange& s, double scale, double limit) const {
  return got_error({.in = inputs(s, s.got), .scale = scale, .limit = limit, .mode = kernels::kScaled},
                   s.truth);
}

CandidateError FusedMetrics::plain_error(const ElementRange& s, double rtol, double atol, bool of_got) const {
  return got_error({.in = inputs(s, s.got),
                    .rtol = rtol,
                    .atol = atol,
                    .mode = of_got ? kernels::kPlainOfGot : kernels::kPlain},
                   s.truth);
}

// The launches that fill one table of sums, of one quantity or of all three; their scratch memory lives until
// the table is read.
class FusedMetrics::Summing {
 public:
  Summing(const FusedMetrics& metrics, const kernels::SumParameters& parameters, bool all,
          const std::vector<Family>& families, const at::Tensor& like)
      : metrics_(metrics),
        parameters_(parameters),
        all_(all),
        many_(all ? kernels::kAllSums : kernels::kSums),
        like_(like) {
    int64_t groups = 0;
    for (const auto& family : families) groups += family.groups;
    out_ = at::zeros({groups, many_}, like.options().dtype(c10::kDouble));
  }

  // One pass for all families whose groups repeat within a few columns.
  void columns(const std::vector<std::pair<Family, int64_t>>& families) {
    auto p = parameters_;
    for (const auto& [family, first] : families)
      p.width = std::max<long long>(p.width, family.inner * family.size);
    p.width *= divide_up(kernels::kThreads, p.width);
    const auto rows = divide_up(p.in.count, p.width);
    auto workers = std::clamp<int64_t>(kColumnThreads / p.width, 1, divide_up(rows, kMinRows));
    p.rows = divide_up(rows, workers), workers = divide_up(rows, p.rows);
    p.sums = scratch(workers * p.width * many_);
    metrics_.launch(all_ ? Kernel::kAllColumns : Kernel::kColumns,
                    workers * divide_up(p.width, kernels::kThreads), p);
    for (const auto& [family, first] : families) {
      const auto period = family.inner * family.size;
      TORCH_CHECK(p.width % period == 0, "error statistics: periods ", p.width, " and ", period,
                  " do not divide");
      fold({.sums = p.sums,
            .workers = workers,
            .width = p.width,
            .period = period,
            .length = family.inner * family.per},
           first);
    }
  }

  // One pass for families whose groups are runs of many adjacent elements: over the pieces that all of their
  // runs are made of, where these are long, else for each family.
  void runs(const std::vector<std::pair<Family, int64_t>>& families) {
    int64_t piece = 0;
    for (const auto& [family, first] : families) {
      const auto period = family.inner * family.size;
      piece = std::gcd(piece, family.inner * family.per);
      if (period < parameters_.in.count) piece = std::gcd(piece, period);
    }
    if (families.size() > 1 && piece < kMinPiece) {
      for (const auto& family : families) runs({family});
      return;
    }
    const bool single = families.size() == 1;
    auto p = parameters_;
    p.length = single ? families[0].first.inner * families[0].first.per : piece;
    p.period =
        single ? families[0].first.inner * families[0].first.size : divide_up(p.in.count, piece) * piece;
    const auto groups = divide_up(p.period, p.length);
    const auto elements = divide_up(p.in.count, p.period) * p.length;  // of a group
    p.workers = std::clamp<int64_t>(divide_up(kSumBlocks, groups), 1, divide_up(elements, kMinSpan));
    p.span = divide_up(elements, p.workers);
    p.sums = scratch(groups * p.workers * many_);
    metrics_.launch(all_ ? Kernel::kAllRuns : Kernel::kRuns, groups * p.workers, p);
    for (const auto& [family, first] : families) {
      const auto length = family.inner * family.per, period = family.inner * family.size;
      fold({.sums = p.sums,
            .workers = 1,
            .width = groups * p.workers,
            .period = single ? groups * p.workers : divide_up(period, piece) * p.workers,
            .length = single ? p.workers : length / piece * p.workers},
           first);
    }
  }

  void values(int64_t first) {
    auto p = parameters_;
    constexpr int64_t kGroups = 2 * kernels::kExponents;
    const int many = all_ ? kernels::kAllValueSums : kernels::kValueSums;
    p.span = span_of(p.in.count, kValueBlocks, kMinSpan);
    const auto blocks = divide_up(p.in.count, p.span);
    p.sums = scratch(blocks * kGroups * many);
    metrics_.launch(all_ ? Kernel::kAllValues : Kernel::kValues, blocks, p);
    kernels::FoldParameters f{
        .sums = p.sums, .workers = blocks, .width = kGroups, .period = kGroups, .length = 1, .count = many};
    constexpr int kError = kernels::kSums;  // the first sum of an error, where all are summed
    f.place[1] = all_ || p.of_truth != 0 ? 3 : 1;
    for (const int answer : {1, 2})
      if (all_) f.place[2 * answer] = answer * kError, f.place[2 * answer + 1] = answer * kError + 1;
    add_fold(f, first);
  }

  // Of the quantity whose sums begin at `from`.
  GroupSums take(int64_t from = 0) {
    if (!here_.defined()) here_ = out_.cpu();
    GroupSums sums(static_cast<size_t>(here_.size(0)));
    const auto* numbers = here_.const_data_ptr<double>() + from;
    for (size_t g = 0; g < sums.size(); ++g, numbers += many_)
      std::copy_n(numbers, kernels::kSums, sums[g].begin());
    return sums;
  }

 private:
  double* scratch(int64_t numbers) {
    kept_.push_back(workspace(numbers * static_cast<int64_t>(sizeof(double)), like_));
    return static_cast<double*>(kept_.back().mutable_data_ptr());
  }
  void fold(kernels::FoldParameters p, int64_t first) {
    p.count = many_;
    for (int k = 0; k < many_; ++k) p.place[k] = k;
    add_fold(p, first);
  }
  void add_fold(kernels::FoldParameters p, int64_t first) {
    p.stride = many_;
    p.out = out_.mutable_data_ptr<double>() + first * many_;
    metrics_.launch(Kernel::kFold, divide_up(p.period, p.length), p);
  }

  const FusedMetrics& metrics_;
  kernels::SumParameters parameters_;
  bool all_;
  int many_;
  const at::Tensor& like_;
  at::Tensor out_, here_;
  std::vector<at::Tensor> kept_;
};

// Of a family of one group among several: the sums of one that covers all elements, added up.
void FusedMetrics::sum_families(Summing& summing, const std::vector<Family>& families,
                                int64_t elements) const {
  if (elements == 0) return;
  std::vector<std::pair<Family, int64_t>> columns, runs;
  int64_t first = 0;
  for (const auto& family : families) {
    const auto period = family.inner * family.size;
    const bool whole = family.groups == 1 && families.size() > 2;
    if (family.by_value)
      summing.values(first);
    else if (!whole)
      (period < elements && period <= kMaxColumns ? columns : runs).emplace_back(family, first);
    first += family.groups;
  }
  if (!columns.empty()) summing.columns(columns);
  if (!runs.empty()) summing.runs(runs);
}

namespace {
// Fills in what sum_families leaves out.
void add_whole_sums(FusedMetrics::GroupSums& sums, const std::vector<FusedMetrics::Family>& families) {
  int64_t first = 0, whole = -1, complete = -1;
  const FusedMetrics::Family* covering = nullptr;
  for (const auto& family : families) {
    if (!family.by_value && family.groups == 1 && families.size() > 2)
      whole = first;
    else if (!family.by_value && covering == nullptr)
      covering = &family, complete = first;
    first += family.groups;
  }
  if (whole < 0 || covering == nullptr) return;
  for (int64_t g = 0; g < covering->groups; ++g)
    for (size_t k = 0; k < kernels::kSums; ++k)
      sums[static_cast<size_t>(whole)][k] += sums[static_cast<size_t>(complete + g)][k];
}
}  // namespace

FusedMetrics::GroupSums FusedMetrics::group_sums(const ElementRange& s, const at::Tensor& answer,
                                                 const std::vector<Family>& families, double scale,
                                                 Ulps ulps) const {
  Summing summing(*this,
                  {.in = inputs(s, answer),
                   .of_truth = !answer.defined(),
                   .epsilon = ulps.epsilon,
                   .smallest_ulp = ulps.smallest,
                   .scale = scale},
                  false, families, s.truth);
  sum_families(summing, families, s.truth.numel());
  auto sums = summing.take();
  add_whole_sums(sums, families);
  return sums;
}

FusedMetrics::AllSums FusedMetrics::all_sums(const ElementRange& s, const std::vector<Family>& families,
                                             double scale, Ulps ulps) const {
  Summing summing(
      *this, {.in = inputs(s, s.got), .epsilon = ulps.epsilon, .smallest_ulp = ulps.smallest, .scale = scale},
      true, families, s.truth);
  sum_families(summing, families, s.truth.numel());
  AllSums sums{summing.take(), summing.take(kernels::kSums), summing.take(2 * kernels::kSums)};
  for (auto* of : {&sums.truth, &sums.own, &sums.got}) add_whole_sums(*of, families);
  return sums;
}

void FusedMetrics::keep_agreeing(const at::Tensor& agreed, const at::Tensor& truth, const at::Tensor& other,
                                 double limit) const {
  kernels::AgreeParameters p{.truth = elements(truth),
                             .other = elements(other),
                             .agreed = static_cast<unsigned char*>(agreed.mutable_data_ptr()),
                             .count = truth.numel(),
                             .span = span_of(truth.numel(), kMetricBlocks, kMinSpan),
                             .limit = limit};
  if (p.count > 0) launch(Kernel::kAgree, divide_up(p.count, p.span), p);
}

namespace {
std::unique_ptr<FusedMetrics> used_metrics;
c10::DeviceType used_device = c10::kCUDA;
}  // namespace

void use_fused_metrics(std::unique_ptr<FusedMetrics> metrics, c10::DeviceType type) {
  used_metrics = std::move(metrics), used_device = type;
}

const FusedMetrics* fused_metrics(std::initializer_list<at::Tensor> tensors) {
  if (!used_metrics) return nullptr;
  for (const auto& tensor : tensors)
    if (tensor.defined() &&
        (tensor.device().type() != used_device || !FusedMetrics::reads(tensor.scalar_type())))
      return nullptr;
  return used_metrics.get();
}

}  // namespace nereid::replay
