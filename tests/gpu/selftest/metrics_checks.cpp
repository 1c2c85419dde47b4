#include <ATen/Context.h>
#include <ATen/TensorOperators.h>

#include <cmath>
#include <limits>

#include "nereid/base/deadline.h"
#include "nereid/replay/cuda/cuda_machine.h"
#include "nereid/replay/cuda/cuda_metrics.h"
#include "nereid/replay/worker/compare/compare.h"
#include "nereid/replay/worker/compare/error_statistics.h"
#include "nereid/replay/worker/compare/error_tail.h"
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

std::string text(const CandidateError& e) {
  return fmt::format(
      "wrong {} first {} worst {} largest {:.17g} absolute {:.17g} relative {:.17g} squared {:.17g}", e.wrong,
      e.first, e.worst, e.largest, e.absolute, e.relative, e.squared);
}

bool equal(const CandidateError& a, const CandidateError& b) {
  return a.wrong == b.wrong && a.first == b.first && a.worst == b.worst && a.largest == b.largest &&
         a.absolute == b.absolute && a.relative == b.relative && near(a.squared, b.squared, b.squared);
}

// Against the loops of a CPU.
Status compare_tails(const FusedMetrics& fused, const ElementRange& s, const std::string& name) {
  const auto here = [](const at::Tensor& t) { return t.defined() ? t.to(at::kCPU) : t; };
  const auto d = in_double(s);
  const ElementRange cpu{here(d.got), here(d.own), here(d.truth), here(s.agreed), s.largest};
  const auto expected = error_tail(cpu, cpu.got, 0.7);
  const auto errors = at::empty({s.got.numel()}, s.got.options().dtype(at::kFloat));
  const auto tail = fused.tail(s, s.got, 0.7, errors);
  NEREID_EXPECT(tail.counts == expected.counts, "{}: tail {}, loops {}", name, fmt::join(tail.counts, " "),
                fmt::join(expected.counts, " "));
  const auto finite =
      cpu.own.isfinite().logical_and(cpu.truth.abs().le(s.largest)).logical_and(cpu.got.isfinite());
  const auto judged = cpu.agreed.defined() ? finite.logical_and(cpu.agreed) : finite;
  const auto error = cpu.got.sub(cpu.truth).abs().div(cpu.truth.abs().clamp_min(0.7));
  NEREID_EXPECT(here(errors).equal(at::where(judged, error, 0.0).to(at::kFloat)), "{}: the errors themselves",
                name);
  return ok_status();
}

Status compare_closeness(const FusedMetrics& fused, const ElementRange& s, const std::string& name) {
  const auto d = in_double(s);
  for (const auto& [rtol, atol] : {std::pair(0.0, 0.0), {1e-3, 0.0}, {0.0, 1e-1}, {1e300, 1e300}})
    for (const bool equal_nan : {false, true})
      for (const auto& other : {d.truth, d.own}) {
        const bool expected = at::isclose(d.own, other, rtol, atol, equal_nan).all().item().toBool();
        const auto& given = other.is_same(d.own) ? s.own : s.truth;
        NEREID_EXPECT(fused.all_close(s.own, given, rtol, atol, equal_nan) == expected,
                      "{}: close within {} and {}: operators {}", name, rtol, atol, expected);
      }
  return ok_status();
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
  const auto both = fused.error_pair(s, 0.7);
  const auto unlimited = by_operators::scaled_error(d, 0.7, kInfinity);
  NEREID_EXPECT(both.own.largest == own.largest && both.own.squared == own.squared &&
                    both.got.largest == unlimited.largest && both.got.worst == unlimited.worst &&
                    near(both.got.squared, unlimited.squared, unlimited.squared),
                "{}: both errors {} and {}; operators {} and {}", name, both.own.largest, text(both.got),
                own.largest, text(unlimited));
  const auto whole = fused.scale_statistics(s);
  const auto truth =
                 by_operators::scale_of({d.truth, d.truth, d.truth, {}, std::numeric_limits<double>::max()}),
             of_own = by_operators::scale_of({d.own, d.own, d.own, {}, std::numeric_limits<double>::max()});
  NEREID_EXPECT(whole.truth.count == truth.count && near(whole.truth.squared, truth.squared, truth.squared) &&
                    whole.own_finite == of_own.count,
                "{}: whole {} {} {}, operators {} {} {}", name, whole.truth.count, whole.truth.squared,
                whole.own_finite, truth.count, truth.squared, of_own.count);
  NEREID_TRY_STATUS(compare_tails(fused, s, name));
  NEREID_TRY_STATUS(compare_closeness(fused, s, name));
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
      {100},         {5003},           {70001},        {50, 30, 7},    {3, 1, 5, 2}, {1, 4099, 3},
      {4, 33000, 2}, {2, 3, 9001},     {1000, 2},      {2, 100000},    {100000, 2},  {1 << 22},
      {2048, 2048},  {16, 64, 56, 56}, {16, 64, 2048}, {3, 1024, 1024}};
  for (const auto& sizes : shapes)
    for (const bool agreed : {false, true}) {
      int64_t count = 1;
      for (const auto size : sizes) count *= size;
      const auto s = odd_elements(count, at::kBFloat16, at::kDouble, agreed);
      const auto d = in_double(s);
      const auto found = sums_of(sizes, s, s.got, false), again = sums_of(sizes, s, s.got, false),
                 expected = sums_of(sizes, d, d.got, true);
      const double most = std::sqrt(expected[0].e2 * static_cast<double>(count));
      ErrorStatistics all(sizes, dtype_of(s.got.scalar_type()), 0.9);
      auto own = all.zeros(), got = all.zeros();
      NEREID_EXPECT(all.add_all(s, own, got), "all sums in the same passes");
      for (size_t g = 0; g < found.size(); ++g) {
        NEREID_EXPECT(near(got[g].e, expected[g].e, most) && near(got[g].e2, expected[g].e2, expected[g].e2),
                      "[{}], group {} in the same passes: {} {}, operators {} {}", fmt::join(sizes, ", "), g,
                      got[g].e, got[g].e2, expected[g].e, expected[g].e2);
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

// All of compare(), on the GPU and on a CPU: of numbers of every kind, of which some are wrong or odd.
Result<std::string> comparisons(const Kernels&) {
  NEREID_TRY(const auto machine, CudaMachine::create(0));
  NEREID_TRY(auto fused, load_fused_metrics(*machine));
  use_fused_metrics(std::move(fused));
  at::manual_seed(19);
  int compared = 0;
  for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble, at::kInt, at::kLong, at::kBool})
    for (const double wrong : {0.0, 1e-3, 0.5})
      for (const bool odd : {false, true}) {
        const bool floating = c10::isFloatingType(type);
        auto truth = at::randn({301, 1003}, floats().dtype(at::kDouble)).mul(floating ? 1 : 3);
        if (odd && floating) {
          const auto s = odd_elements(truth.numel(), type, at::kDouble, false);
          truth = s.truth.view(truth.sizes());
        }
        const auto own = truth.to(type);
        const auto off = at::rand(truth.sizes(), truth.options()).lt(wrong);
        const auto got = at::where(off, floating ? truth.mul(1.5) : truth.add(2), truth).to(type);
        const auto exact = floating ? truth : own;
        const auto on = [&](c10::DeviceType device, double slack) {
          OutputTensors tensors{.dtype = dtype_of(type),
                                .got = got.to(device),
                                .own = own.to(device),
                                .truth = exact.to(device),
                                .other_inputs = slack > 1,
                                .coarse = floating && own.element_size() == 2};
          if (floating) widen(tensors, tensors.truth.mul(1 + 1e-9));
          Tolerance tolerance;
          tolerance.slack = slack;
          return compare(tensors, tolerance);
        };
        for (const double slack : {1.0, 16.0}) {
          const auto here = on(at::kCPU, slack), there = on(at::kCUDA, slack);
          NEREID_EXPECT(here.agrees == there.agrees && here.reason == there.reason &&
                            here.wrong == there.wrong && here.undefined == there.undefined &&
                            here.first_wrong == there.first_wrong && here.worst == there.worst &&
                            here.error == there.error,
                        "{}, wrong {}, odd {}, slack {}: '{}' on a GPU, '{}' on a CPU", c10::toString(type),
                        wrong, odd, slack, there.reason, here.reason);
          ++compared;
        }
      }
  return fmt::format("{} comparisons are a CPU's", compared);
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
      const double seconds = timed(work), bytes = 8 + tensors * element;
      report += fmt::format("{} {} {:.2f} ms, {:.0f} bytes an element, {:.0f} GB/s; ", c10::toString(type),
                            name, seconds * 1e3, bytes, static_cast<double>(kCount) * bytes / seconds / 1e9);
    };
    note("scale", 1, [&] { fused->scale_of(s); });
    note("own", 2, [&] { fused->own_error(s, s.own, 1); });
    note("got", 2, [&] { fused->scaled_error(s, 1, 1e-6); });
    note("both errors", 2, [&] { fused->error_pair(s, 1); });
    note("tail", 2, [&] { fused->tail(s, s.got, 1, {}); });
    note("close", 1, [&] { fused->all_close(s.own, s.truth, 1, 1, true); });
    for (const auto& sizes : {std::vector<int64_t>{kSide, kSide}, {kCount}, {64, 256, 128, 128}}) {
      ErrorStatistics statistics(sizes, dtype_of(type), 1);
      auto sums = statistics.zeros();
      const auto name = fmt::format("statistics [{}]", fmt::join(sizes, ", "));
      note((name + " truth").c_str(), 1, [&] { statistics.add_truth(s, 0); });
      note((name + " error").c_str(), 2, [&] { statistics.add_error(sums, s, s.got, 0); });
      auto own_sums = statistics.zeros();
      note((name + " all").c_str(), 2, [&] { statistics.add_all(s, own_sums, sums); });
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
      {"metrics of outputs", metrics, 200},         {"metrics of slices", slices, 200},
      {"metrics of comparisons", comparisons, 200}, {"metrics speed", speed, 120},
      {"inputs drawn on the GPU", draws, 120},
  };
}

}  // namespace nereid::replay::cuda::selftest
