#include <ATen/Context.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "nereid/base/deadline.h"
#include "nereid/replay/cuda/cuda_machine.h"
#include "nereid/replay/cuda/cuda_metrics.h"
#include "nereid/replay/worker/compare/error_statistics.h"
#include "nereid/replay/worker/inputs/inputs.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"
#include "tests/gpu/selftest/floats.h"
#include "tests/gpu/selftest/harness.h"

namespace nereid::replay::cuda::selftest {
namespace {

// Numbers of a dtype, one in thirty odd: infinities, NaNs, zeros, numbers beyond and below the dtype's.
ElementRange odd_elements(int64_t count, c10::ScalarType type, c10::ScalarType truth_type, bool agreed) {
  const auto doubles = floats().dtype(at::kDouble);
  const double eps = epsilon(dtype_of(type));
  const auto odd =
      at::tensor({kInfinity, -kInfinity, double{NAN}, 1e5, -1e5, 0.0, -0.0, 1e300, 1e-310, 1e-42, -3e-8},
                 at::kDouble)
          .to(doubles.device());
  const auto which = at::randint(odd.numel(), {count}, doubles.dtype(at::kLong));
  const auto some = [&] { return at::rand({count}, doubles).lt(0.03); };
  const auto all = some();
  const auto spoilt = [&](const at::Tensor& t) {
    return at::where(all.logical_or(some()), odd.index_select(0, which), t);
  };
  const auto exact = at::randn({count}, doubles);
  const auto noisy = [&](double size) { return exact.mul(at::randn({count}, doubles).mul(size).add(1)); };
  return {spoilt(noisy(4 * eps)).to(type), spoilt(noisy(eps)).to(type), spoilt(exact).to(truth_type),
          agreed ? at::rand({count}, doubles).lt(0.9) : at::Tensor(), largest_finite(dtype_of(type))};
}

ElementRange in_double(const ElementRange& s) {
  return {s.got.to(at::kDouble), s.own.to(at::kDouble), s.truth.to(at::kDouble), s.agreed, s.largest};
}

bool near(double a, double b, double magnitude) {
  return std::isfinite(b) && std::isfinite(magnitude) ? std::abs(a - b) <= 1e-11 * magnitude
                                                      : std::isfinite(a) == std::isfinite(b);
}

std::string text(const GotError& e) {
  return fmt::format(
      "wrong {} first {} worst {} largest {:.17g} absolute {:.17g} relative {:.17g} squared {:.17g}", e.wrong,
      e.first, e.worst, e.largest, e.absolute, e.relative, e.squared);
}

bool equal(const GotError& a, const GotError& b) {
  return a.wrong == b.wrong && a.first == b.first && a.worst == b.worst && a.largest == b.largest &&
         a.absolute == b.absolute && a.relative == b.relative && near(a.squared, b.squared, b.squared);
}

Status compare_metrics(const FusedMetrics& fused, const ElementRange& s) {
  const auto d = in_double(s);
  const auto name =
      fmt::format("{} elements of {}, truth {}, agreed {}", s.got.numel(), c10::toString(s.got.scalar_type()),
                  c10::toString(s.truth.scalar_type()), s.agreed.defined());
  const auto scale = fused.scale_of(s), expected = by_operators::scale_of(d);
  NEREID_EXPECT(scale.count == expected.count && scale.undefined == expected.undefined &&
                    near(scale.squared, expected.squared, expected.squared),
                "{}: {} {} {}, operators {} {} {}", name, scale.count, scale.undefined, scale.squared,
                expected.count, expected.undefined, expected.squared);
  const auto own = fused.own_error(s, s.own, 0.7), own_expected = by_operators::own_error(d, d.own, 0.7);
  NEREID_EXPECT(
      own.largest == own_expected.largest && near(own.squared, own_expected.squared, own_expected.squared),
      "{}: {} {}, operators {} {}", name, own.largest, own.squared, own_expected.largest,
      own_expected.squared);
  for (const double limit : {0.0, 1e-6, 1e-2, 1e3}) {
    const auto got = fused.scaled_error(s, 0.7, limit), wanted = by_operators::scaled_error(d, 0.7, limit);
    NEREID_EXPECT(equal(got, wanted), "{}, limit {}: {}; operators {}", name, limit, text(got), text(wanted));
  }
  for (const bool of_got : {false, true}) {
    const auto got = fused.plain_error(s, 1e-3, 1e-4, of_got),
               wanted = by_operators::plain_error(d, 1e-3, 1e-4, of_got);
    NEREID_EXPECT(equal(got, wanted), "{}, plain: {}; operators {}", name, text(got), text(wanted));
  }
  return ok_status();
}

Result<std::string> metrics(const Kernels&) {
  NEREID_TRY(const auto machine, CudaMachine::create(0));
  const Stopwatch watch;
  NEREID_TRY(const auto fused, load_fused_metrics(*machine));
  const double loaded = watch.seconds();
  at::manual_seed(17);
  int compared = 0;
  for (const auto type :
       {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble, at::kFloat8_e4m3fn, at::kFloat8_e5m2})
    for (const auto truth : {at::kDouble, type})
      for (const bool agreed : {false, true})
        for (const int64_t count : {1, 31, 5003, (1 << 22) + 17}) {
          NEREID_TRY_STATUS(compare_metrics(*fused, odd_elements(count, type, truth, agreed)));
          ++compared;
        }
  return fmt::format("loaded in {:.1f} ms; {} comparisons are the operators'", loaded * 1e3, compared);
}

ErrorStatistics::Sums sums_of(const std::vector<int64_t>& sizes, const ElementRange& s,
                              const at::Tensor& answer, bool by_operators) {
  ErrorStatistics statistics(sizes, dtype_of(s.got.scalar_type()), 0.9, by_operators);
  statistics.add_truth(s, 0);
  auto sums = statistics.zeros();
  statistics.add_error(sums, s, answer, 0);
  return sums;
}

Result<std::string> slices(const Kernels&) {
  NEREID_TRY(const auto machine, CudaMachine::create(0));
  NEREID_TRY(auto fused, load_fused_metrics(*machine));
  use_fused_metrics(std::move(fused));
  at::manual_seed(18);
  const std::vector<std::vector<int64_t>> shapes = {
      {100},        {5003},    {70001},     {50, 30, 7}, {3, 1, 5, 2}, {1, 4099, 3}, {4, 33000, 2},
      {2, 3, 9001}, {1000, 2}, {2, 100000}, {100000, 2}, {1 << 22},    {2048, 2048}, {16, 64, 56, 56}};
  for (const auto& sizes : shapes)
    for (const bool agreed : {false, true}) {
      int64_t count = 1;
      for (const auto size : sizes) count *= size;
      const auto s = odd_elements(count, at::kBFloat16, at::kDouble, agreed);
      const auto d = in_double(s);
      const auto found = sums_of(sizes, s, s.got, false), again = sums_of(sizes, s, s.got, false),
                 expected = sums_of(sizes, d, d.got, true);
      const double most = std::sqrt(expected[0].e2 * static_cast<double>(count));
      for (size_t g = 0; g < found.size(); ++g) {
        NEREID_EXPECT(
            near(found[g].e, expected[g].e, most) && near(found[g].e2, expected[g].e2, expected[g].e2),
            "[{}], group {}: {} {}, operators {} {}", fmt::join(sizes, ", "), g, found[g].e, found[g].e2,
            expected[g].e, expected[g].e2);
        NEREID_EXPECT(found[g].e == again[g].e && found[g].e2t2 == again[g].e2t2,
                      "the same bits twice, group {}", g);
        if (g + 2 * kernels::kExponents >= found.size()) continue;
        NEREID_EXPECT(near(found[g].e2t2, expected[g].e2t2, expected[g].e2t2),
                      "[{}], group {}: {}, operators {}", fmt::join(sizes, ", "), g, found[g].e2t2,
                      expected[g].e2t2);
      }
    }
  return fmt::format("{} shapes give the operators' sums, the same bits each time", shapes.size());
}

// Of an output of 1 GiB, in one pass each; and what operators take for a part of it.
Result<std::string> speed(const Kernels&) {
  NEREID_TRY(const auto machine, CudaMachine::create(0));
  NEREID_TRY(auto made, load_fused_metrics(*machine));
  const auto* fused = made.get();
  use_fused_metrics(std::move(made));
  constexpr int64_t kSide = 16384, kCount = kSide * kSide, kPart = int64_t{1} << 22;
  std::string report;
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const auto truth = at::randn({kCount}, floats()).to(at::kDouble);
    const auto own = truth.to(type);
    const ElementRange s{own, own, truth, {}, largest_finite(dtype_of(type))};
    const auto timed = [&](const std::function<void()>& work) {
      work();
      const Stopwatch watch;
      for (int i = 0; i < 5; ++i) work();
      return watch.seconds() / 5;
    };
    const double element = static_cast<double>(own.element_size());
    const auto note = [&](const char* name, double tensors, const std::function<void()>& work) {
      const double seconds = timed(work);
      report += fmt::format("{} {} {:.2f} ms {:.0f} GB/s; ", c10::toString(type), name, seconds * 1e3,
                            static_cast<double>(kCount) * (8 + tensors * element) / seconds / 1e9);
    };
    note("scale", 1, [&] { fused->scale_of(s); });
    note("own", 2, [&] { fused->own_error(s, s.own, 1); });
    note("got", 2, [&] { fused->scaled_error(s, 1, 1e-6); });
    for (const auto& sizes : {std::vector<int64_t>{kSide, kSide}, {kCount}, {64, 256, 128, 128}}) {
      ErrorStatistics statistics(sizes, dtype_of(type), 1);
      auto sums = statistics.zeros();
      const auto name = fmt::format("statistics [{}]", fmt::join(sizes, ", "));
      note((name + " truth").c_str(), 1, [&] { statistics.add_truth(s, 0); });
      note((name + " error").c_str(), 2, [&] { statistics.add_error(sums, s, s.got, 0); });
    }
    const double part = timed([&] {
      const auto d = in_double(
          {own.narrow(0, 0, kPart), own.narrow(0, 0, kPart), truth.narrow(0, 0, kPart), {}, s.largest});
      by_operators::scale_of(d), by_operators::own_error(d, d.own, 1), by_operators::scaled_error(d, 1, 1e-6);
    });
    report += fmt::format("operators' scale, own and got {:.0f} ms; ", part * 1e3 * kCount / kPart);
  }
  return report;
}

// Trials' inputs of 1 GiB: the same from the same seed, distinct elements, and how long they take.
Result<std::string> draws(const Kernels&) {
  NEREID_TRY(const auto machine, CudaMachine::create(0));
  constexpr int64_t kCount = int64_t{1} << 28;
  double seconds = 0;
  const auto drawn = [&](uint64_t seed) {
    auto generator = at::globalContext().defaultGenerator(at::kCPU).clone();
    generator.set_current_seed(seed);
    auto tensor = at::ones({kCount / 1024, 1024}, floats());
    machine->synchronize();
    const Stopwatch watch;
    NEREID_CHECK(apply_distribution(tensor, InputDistribution::kWide, generator), "ones become wide");
    machine->synchronize();
    seconds = watch.seconds();
    return tensor;
  };
  const auto a = drawn(1), b = drawn(1), c = drawn(2);
  NEREID_EXPECT(a.equal(b) && !a.equal(c), "a seed decides");
  const double low = a.min().item().toDouble(), high = a.max().item().toDouble();
  NEREID_EXPECT(low >= 0x1p-6 && low < 0x1p-5 && high > 0x1p15 && high <= 0x1p16, "{} to {}", low, high);
  const auto first = a.narrow(0, 0, 4096), second = a.narrow(0, 4096, 4096);
  NEREID_EXPECT(!first.equal(second), "parts are drawn one after the other");
  return fmt::format("wide numbers of 1 GiB in {:.1f} ms", seconds * 1e3);
}

}  // namespace

std::vector<Check> metrics_checks() {
  return {
      {"metrics of outputs", metrics, 200},
      {"metrics of slices", slices, 200},
      {"metrics speed", speed, 120},
      {"inputs drawn on the GPU", draws, 120},
  };
}

}  // namespace nereid::replay::cuda::selftest
