#include "nereid/replay/worker/compare/fused_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "nereid/replay/worker/operators.h"

namespace nereid::replay {
namespace {

using kernels::Kernel;

constexpr int64_t kMetricBlocks = 2112;  // at most: a fixed number, so that no GPU's size changes a sum
constexpr int64_t kSumBlocks = 4096;
constexpr int64_t kValueBlocks = 1024;
constexpr int64_t kLeastSpan = 4096;  // elements that a block is worth
constexpr int64_t kMostColumns =
    65536;  // groups of longer periods are at least kMostColumns / 4096 elements long
constexpr int64_t kColumnThreads = int64_t{1} << 18;
constexpr int64_t kLeastRows = 16;  // that a thread of the columns kernel adds up

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
  p.span = span_of(p.in.count, kMetricBlocks, kLeastSpan);
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

Scale FusedMetrics::scale_of(const ElementRange& s) const {
  Scale sum;
  for (const auto& part : parts<kernels::ScalePart>(Kernel::kScale, {.in = inputs(s, {})}, s.truth))
    sum.add({part.squared, part.count, part.undefined});
  return sum;
}

OwnError FusedMetrics::own_error(const ElementRange& s, const at::Tensor& other, double scale) const {
  OwnError sum;
  for (const auto& part :
       parts<kernels::OwnPart>(Kernel::kOwnError, {.in = inputs(s, other), .scale = scale}, s.truth))
    sum.add({part.largest, part.squared});
  return sum;
}

GotError FusedMetrics::got_error(const kernels::MetricParameters& parameters, const at::Tensor& like) const {
  GotError sum;
  for (const auto& part : parts<kernels::GotPart>(Kernel::kGotError, parameters, like))
    sum.add({part.wrong, part.first, part.worst, part.largest, part.absolute, part.relative, part.squared},
            0);
  return sum;
}

GotError FusedMetrics::scaled_error(const ElementRange& s, double scale, double limit) const {
  return got_error({.in = inputs(s, s.got), .scale = scale, .limit = limit, .mode = kernels::kScaled},
                   s.truth);
}

GotError FusedMetrics::plain_error(const ElementRange& s, double rtol, double atol, bool of_got) const {
  return got_error({.in = inputs(s, s.got),
                    .rtol = rtol,
                    .atol = atol,
                    .mode = of_got ? kernels::kPlainOfGot : kernels::kPlain},
                   s.truth);
}

// The launches that fill one table of sums; their scratch memory lives until the table is read.
class FusedMetrics::Summing {
 public:
  Summing(const FusedMetrics& metrics, const kernels::SumParameters& parameters, int64_t groups,
          const at::Tensor& like)
      : metrics_(metrics),
        parameters_(parameters),
        like_(like),
        out_(at::zeros({groups, kernels::kSums}, like.options().dtype(c10::kDouble))) {}

  // One pass for all families whose groups repeat within a few columns.
  void columns(const std::vector<std::pair<Family, int64_t>>& families) {
    auto p = parameters_;
    for (const auto& [family, first] : families)
      p.width = std::max<long long>(p.width, family.inner * family.size);
    p.width *= divide_up(kernels::kThreads, p.width);
    const auto rows = divide_up(p.in.count, p.width);
    auto workers = std::clamp<int64_t>(kColumnThreads / p.width, 1, divide_up(rows, kLeastRows));
    p.rows = divide_up(rows, workers), workers = divide_up(rows, p.rows);
    p.sums = scratch(workers * p.width * kernels::kSums);
    metrics_.launch(Kernel::kColumns, workers * divide_up(p.width, kernels::kThreads), p);
    for (const auto& [family, first] : families) {
      const auto period = family.inner * family.size;
      TORCH_CHECK(p.width % period == 0, "error statistics: periods ", p.width, " and ", period,
                  " do not divide");
      fold({.sums = p.sums,
            .workers = workers,
            .width = p.width,
            .period = period,
            .length = family.inner * family.per,
            .count = kernels::kSums},
           first);
    }
  }

  // One pass for one family, whose groups are runs of many adjacent elements.
  void runs(const Family& family, int64_t first) {
    auto p = parameters_;
    p.length = family.inner * family.per, p.period = family.inner * family.size;
    const auto groups = divide_up(p.period, p.length);
    const auto elements = divide_up(p.in.count, p.period) * p.length;  // of a group
    p.workers = std::clamp<int64_t>(divide_up(kSumBlocks, groups), 1, divide_up(elements, kLeastSpan));
    p.span = divide_up(elements, p.workers);
    p.sums = scratch(groups * p.workers * kernels::kSums);
    metrics_.launch(Kernel::kRuns, groups * p.workers, p);
    fold({.sums = p.sums,
          .workers = 1,
          .width = groups * p.workers,
          .period = groups * p.workers,
          .length = p.workers,
          .count = kernels::kSums},
         first);
  }

  void values(int64_t first) {
    auto p = parameters_;
    constexpr int64_t kGroups = 2 * kernels::kExponents;
    p.span = span_of(p.in.count, kValueBlocks, kLeastSpan);
    const auto blocks = divide_up(p.in.count, p.span);
    p.sums = scratch(blocks * kGroups * 2);
    metrics_.launch(Kernel::kValues, blocks, p);
    fold({.sums = p.sums,
          .workers = blocks,
          .width = kGroups,
          .period = kGroups,
          .length = 1,
          .count = 2,
          .place = {0, p.of_truth != 0 ? 3 : 1}},
         first);
  }

  GroupSums take() const {
    const auto here = out_.cpu();
    GroupSums sums(static_cast<size_t>(here.size(0)));
    std::memcpy(sums.data(), here.const_data_ptr(), sums.size() * sizeof(sums[0]));
    return sums;
  }

 private:
  double* scratch(int64_t numbers) {
    kept_.push_back(workspace(numbers * static_cast<int64_t>(sizeof(double)), like_));
    return static_cast<double*>(kept_.back().mutable_data_ptr());
  }
  void fold(kernels::FoldParameters p, int64_t first) {
    p.out = out_.mutable_data_ptr<double>() + first * kernels::kSums;
    metrics_.launch(Kernel::kFold, divide_up(p.period, p.length), p);
  }

  const FusedMetrics& metrics_;
  kernels::SumParameters parameters_;
  const at::Tensor& like_;
  at::Tensor out_;
  std::vector<at::Tensor> kept_;
};

FusedMetrics::GroupSums FusedMetrics::group_sums(const ElementRange& s, const at::Tensor& answer,
                                                 const std::vector<Family>& families, double scale,
                                                 Ulps ulps) const {
  int64_t groups = 0;
  for (const auto& family : families) groups += family.groups;
  Summing summing(*this,
                  {.in = inputs(s, answer),
                   .of_truth = !answer.defined(),
                   .epsilon = ulps.epsilon,
                   .smallest_ulp = ulps.smallest,
                   .scale = scale},
                  groups, s.truth);
  if (s.truth.numel() == 0) return summing.take();
  std::vector<std::pair<Family, int64_t>> columns;
  int64_t first = 0, whole = -1, complete = -1;  // families of one group, and one that covers all elements
  const Family* covering = nullptr;
  for (const auto& family : families) {
    if (family.by_value) {
      summing.values(first);
    } else if (family.groups == 1 && families.size() > 2) {
      whole = first;
    } else {
      if (covering == nullptr) covering = &family, complete = first;
      const auto period = family.inner * family.size;
      if (period < s.truth.numel() && period <= kMostColumns)
        columns.emplace_back(family, first);
      else
        summing.runs(family, first);
    }
    first += family.groups;
  }
  if (!columns.empty()) summing.columns(columns);
  auto sums = summing.take();
  if (whole >= 0 && covering != nullptr)
    for (int64_t g = 0; g < covering->groups; ++g)
      for (size_t k = 0; k < kernels::kSums; ++k)
        sums[static_cast<size_t>(whole)][k] += sums[static_cast<size_t>(complete + g)][k];
  return sums;
}

void FusedMetrics::keep_agreeing(const at::Tensor& agreed, const at::Tensor& truth, const at::Tensor& other,
                                 double limit) const {
  kernels::AgreeParameters p{.truth = elements(truth),
                             .other = elements(other),
                             .agreed = static_cast<unsigned char*>(agreed.mutable_data_ptr()),
                             .count = truth.numel(),
                             .span = span_of(truth.numel(), kMetricBlocks, kLeastSpan),
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
