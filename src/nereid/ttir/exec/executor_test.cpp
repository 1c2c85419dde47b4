#include "nereid/ttir/exec/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>

#include "nereid/base/file.h"
#include "nereid/base/thread_pool.h"
#include "nereid/ttir/exec/schedule.h"

namespace nereid::ttir {
namespace {

// A launch of a golden kernel with its buffers.
class Golden {
 public:
  explicit Golden(const std::string& golden) : kernel_(load(golden)) {}

  template <class T>
  Golden& buffer(std::vector<T>& values, const std::string& name, bool written = true) {
    Buffer b;
    b.data = reinterpret_cast<std::byte*>(values.data());
    b.bytes = static_cast<int64_t>(values.size() * sizeof(T));
    b.name = name;
    b.element_bytes = sizeof(T);
    bitmaps_.push_back(
        std::make_unique<std::vector<uint8_t>>(values.size() * sizeof(T) / 8 + 16, written ? 0xff : 0));
    b.written = bitmaps_.back()->data();
    launch_.arguments.emplace_back(Pointer{static_cast<int>(buffers_.size()), 0});
    buffers_.push_back(b);
    return *this;
  }
  Golden& integer(int64_t value) {
    launch_.arguments.emplace_back(Scalar{static_cast<uint32_t>(value)});
    return *this;
  }
  Golden& real(float value) {
    launch_.arguments.emplace_back(Scalar{std::bit_cast<uint32_t>(value)});
    return *this;
  }
  Report go(int64_t programs, int threads = 1, bool sanitize = true, int64_t y = 1) {
    launch_.grid = {programs, y, 1};
    ThreadPool pool(threads);
    RunOptions options;
    options.pool = &pool;
    options.sanitize = sanitize;
    options.deadline = Deadline::after(20);
    auto report = kernel_.run(launch_, buffers_, options);
    EXPECT_TRUE(report.ok()) << (report ? "" : report.error().message);
    return report ? *report : Report{};
  }
  Cost cost(int64_t programs, int64_t y = 1) {
    launch_.grid = {programs, y, 1};
    return kernel_.cost(launch_);
  }
  const Kernel& kernel() const { return kernel_; }

 private:
  static Kernel load(const std::string& golden) {
    const auto text = read_file(NEREID_SOURCE_DIR "/tests/ttir/golden/" + golden + ".ttir");
    auto loaded = Kernel::load(text.value());
    if (!loaded) ADD_FAILURE() << loaded.error().message;
    return std::move(loaded).value();
  }
  Kernel kernel_;
  Launch launch_;
  std::vector<Buffer> buffers_;
  std::vector<std::unique_ptr<std::vector<uint8_t>>> bitmaps_;
};

std::vector<float> normal(size_t n, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> d;
  std::vector<float> v(n);
  for (float& x : v) x = d(random);
  return v;
}
std::string sentences(const Report& r) {
  std::string all;
  for (const Finding& f : r.findings) all += f.sentence + "\n";
  return all;
}

TEST(Executor, AddsWithARaggedEnd) {
  for (const bool sanitize : {true, false}) {
    auto x = normal(2500, 1), y = normal(2500, 2);
    std::vector<float> o(2500, 7.0f);
    const Report r = Golden("add_relu")
                         .buffer(x, "x")
                         .buffer(y, "y")
                         .buffer(o, "o", false)
                         .integer(2500)
                         .go(3, 2, sanitize);
    EXPECT_TRUE(r.ok()) << sentences(r);
    for (size_t k = 0; k < o.size(); ++k) ASSERT_EQ(o[k], std::max(x[k] + y[k], 0.0f));
  }
}

TEST(Executor, MultipliesMatricesOfAwkwardSizes) {
  const int64_t m = 100, n = 70, k = 45;
  auto a = normal(static_cast<size_t>(m * k), 1), b = normal(static_cast<size_t>(k * n), 2);
  std::vector<float> c(static_cast<size_t>(m * n));
  const Report r = Golden("matmul")
                       .buffer(a, "a")
                       .buffer(b, "b")
                       .buffer(c, "c", false)
                       .integer(m)
                       .integer(n)
                       .integer(k)
                       .integer(k)
                       .integer(n)
                       .integer(n)
                       .go(2, 2, true, 2);
  EXPECT_TRUE(r.ok()) << sentences(r);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double want = 0;
      for (int64_t p = 0; p < k; ++p)
        want += static_cast<double>(a[static_cast<size_t>(i * k + p)]) *
                static_cast<double>(b[static_cast<size_t>(p * n + j)]);
      ASSERT_NEAR(c[static_cast<size_t>(i * n + j)], want, 1e-4);
    }
}

TEST(Executor, SoftmaxAndLayerNorm) {
  const size_t rows = 5, n = 3000;
  auto x = normal(rows * n, 3);
  auto w = normal(n, 4), b = normal(n, 5);
  std::vector<float> s(rows * n), l(rows * n);
  Report r = Golden("softmax").buffer(x, "x").buffer(s, "s", false).integer(n).go(rows);
  EXPECT_TRUE(r.ok()) << sentences(r);
  r = Golden("layer_norm")
          .buffer(x, "x")
          .buffer(w, "w")
          .buffer(b, "b")
          .buffer(l, "l", false)
          .integer(n)
          .real(1e-5f)
          .go(rows);
  EXPECT_TRUE(r.ok()) << sentences(r);
  for (size_t i = 0; i < rows; ++i) {
    const float* v = &x[i * n];
    double sum = 0, mean = 0, square = 0;
    const double top = *std::max_element(v, v + n);
    for (size_t j = 0; j < n; ++j) sum += std::exp(static_cast<double>(v[j]) - top), mean += v[j];
    mean /= static_cast<double>(n);
    for (size_t j = 0; j < n; ++j) square += (v[j] - mean) * (v[j] - mean);
    for (size_t j = 0; j < n; ++j) {
      ASSERT_NEAR(s[i * n + j], std::exp(static_cast<double>(v[j]) - top) / sum, 1e-8);
      ASSERT_NEAR(
          l[i * n + j],
          (v[j] - mean) / std::sqrt(square / static_cast<double>(n) + 1e-5) * static_cast<double>(w[j]) +
              static_cast<double>(b[j]),
          1e-4);
    }
  }
}

TEST(Executor, ScansSortsAndFindsTheLargest) {
  auto x = normal(256, 9);
  std::vector<float> o(256);
  std::vector<int32_t> at(1);
  Report r = Golden("scan_argmax").buffer(x, "x").buffer(o, "o", false).buffer(at, "a", false).go(1);
  EXPECT_TRUE(r.ok()) << sentences(r);
  EXPECT_EQ(at[0], std::max_element(x.begin(), x.end()) - x.begin());
  double sum = 0;
  for (size_t k = 0; k < 256; ++k) ASSERT_NEAR(o[k], sum += static_cast<double>(x[k]), 1e-4);
  r = Golden("sort_rows").buffer(x, "x").buffer(o, "o").go(1);
  for (size_t row = 0; row < 4; ++row) {
    std::vector<float> want(x.begin() + static_cast<long>(row) * 64,
                            x.begin() + static_cast<long>(row + 1) * 64);
    std::sort(want.begin(), want.end());
    EXPECT_TRUE(std::equal(want.begin(), want.end(), o.begin() + static_cast<long>(row) * 64));
  }
}

TEST(Sanitizer, OutOfBoundsIsReportedAndNotDone) {
  for (const bool sanitize : {true, false}) {
    auto x = normal(100), y = normal(128);
    std::vector<float> o(128, 5.0f);
    const Report r = Golden("add_unmasked")
                         .buffer(x, "input x")
                         .buffer(y, "y")
                         .buffer(o, "o")
                         .integer(100)
                         .go(2, 2, sanitize);
    ASSERT_EQ(r.findings.size(), 1u) << sentences(r);
    const Finding& f = r.findings[0];
    EXPECT_EQ(f.kind, FindingKind::kOutOfBounds);
    EXPECT_EQ(f.buffer, "input x");
    EXPECT_EQ(f.index, 100);
    EXPECT_EQ(f.program, (std::array<int64_t, 3>{1, 0, 0}));
    EXPECT_EQ(f.kernel, "add_unmasked");
    EXPECT_EQ(f.file, "kernels.py");
    EXPECT_EQ(f.sentence,
              "out of bounds: element 100 of input x, which has 100 elements, is accessed at kernels.py:22 "
              "in kernel add_unmasked, program (1, 0, 0)");
    EXPECT_EQ(o[99], x[99] + y[99]);
  }
}

TEST(Sanitizer, ReadsOfUnwrittenBytes) {
  auto x = normal(64), y = normal(64);
  std::vector<float> o(64);
  const Report r = Golden("add_unmasked")
                       .buffer(x, "x")
                       .buffer(y, "scratch", false)
                       .buffer(o, "o", false)
                       .integer(64)
                       .go(1);
  ASSERT_EQ(r.findings.size(), 1u) << sentences(r);
  EXPECT_EQ(r.findings[0].kind, FindingKind::kUninitializedRead);
  EXPECT_EQ(r.findings[0].buffer, "scratch");
  EXPECT_EQ(r.findings[0].index, 0);
}

TEST(Sanitizer, RacesBetweenProgramsForAnyNumberOfThreads) {
  std::string first;
  for (const int threads : {1, 2, 4}) {
    std::vector<float> o(16);
    Report r = Golden("shared_store").buffer(o, "o", false).go(5, threads);
    ASSERT_EQ(r.findings.size(), 1u) << sentences(r);
    EXPECT_EQ(r.findings[0].kind, FindingKind::kRace);
    EXPECT_EQ(r.finding_count, 4);
    auto x = normal(16 * 8 + 1);
    r = Golden("neighbour_read").buffer(x, "x").go(8, threads);
    // Within a program, too, a lane overwrites what its neighbour has yet to read.
    ASSERT_GE(r.findings.size(), 2u);
    EXPECT_EQ(r.findings[0].kind, FindingKind::kMissingBarrier);
    const Finding& race = r.findings[1];
    EXPECT_EQ(race.kind, FindingKind::kRace);
    EXPECT_EQ(race.index, 16);
    EXPECT_EQ(race.program[0], 1);
    if (first.empty()) first = sentences(r);
    EXPECT_EQ(sentences(r), first);
  }
  std::vector<float> o(16);
  EXPECT_TRUE(Golden("shared_store").buffer(o, "o", false).go(1).ok());
  EXPECT_TRUE(Golden("shared_store").buffer(o, "o", false).go(5, 2, false).ok());  // no bookkeeping without
                                                                                   // the sanitizer
}

TEST(Sanitizer, AtomicsAreNoRace) {
  auto x = normal(64 * 20);
  std::vector<float> o(1, 0.0f);
  const Report r = Golden("atomic_sum").buffer(x, "x").buffer(o, "o").go(20, 2);
  EXPECT_TRUE(r.ok()) << sentences(r);
  EXPECT_NEAR(o[0], std::accumulate(x.begin(), x.end(), 0.0), 1e-3);
}

TEST(Sanitizer, TheLastArriverMayReadWhatTheOthersWrote) {
  for (const bool acquires : {true, false}) {
    auto x = normal(64 * 40);
    std::vector<float> partial(64), o(1);
    std::vector<int32_t> counter(1, 0);
    const Report r = Golden(acquires ? "last_arriver" : "early_reader")
                         .buffer(x, "x")
                         .buffer(partial, "partial", false)
                         .buffer(counter, "counter")
                         .buffer(o, "o", false)
                         .integer(40)
                         .go(40, 2);
    if (acquires) {
      EXPECT_TRUE(r.ok()) << sentences(r);
      EXPECT_NEAR(o[0], std::accumulate(x.begin(), x.end(), 0.0), 1e-3);
    } else {
      ASSERT_FALSE(r.findings.empty());
      EXPECT_EQ(r.findings[0].kind, FindingKind::kRace) << sentences(r);
    }
  }
}

TEST(Sanitizer, ALockOrdersWhatItGuards) {
  for (const bool sanitize : {true, false})
    for (const int threads : {1, 4}) {
      auto x = normal(64 * 50);
      std::vector<float> o(1, 0.0f);
      std::vector<int32_t> lock(1, 0);
      const Report r =
          Golden("spin_lock").buffer(x, "x").buffer(lock, "lock").buffer(o, "o").go(50, threads, sanitize);
      EXPECT_TRUE(r.ok()) << sentences(r);
      EXPECT_NEAR(o[0], std::accumulate(x.begin(), x.end(), 0.0), 1e-3);
    }
}

TEST(Executor, ProgramsMayWaitForLaterOnes) {
  for (const bool sanitize : {true, false})
    for (const int threads : {1, 3}) {
      std::vector<int32_t> flags(400, 0), o(400, 0);
      const Report r =
          Golden("wait_for_next").buffer(flags, "flags").buffer(o, "o", false).go(400, threads, sanitize);
      EXPECT_TRUE(r.ok()) << sentences(r);
      EXPECT_EQ(o[0], 400);
    }
}

TEST(Executor, ADeadlockEnds) {
  auto x = normal(64);
  std::vector<float> o(1);
  std::vector<int32_t> lock(1, 1);  // held by a program that does not exist
  const Report r = Golden("spin_lock").buffer(x, "x").buffer(lock, "lock").buffer(o, "o").go(1, 2);
  EXPECT_TRUE(r.timed_out);
}

TEST(Sanitizer, DivisionAssertionAndOverflow) {
  std::vector<int32_t> x(16), o(16);
  std::iota(x.begin(), x.end(), 0);
  Report r = Golden("divide").buffer(x, "x").buffer(o, "o").integer(0).go(1);
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_EQ(r.findings[0].kind, FindingKind::kDivisionByZero);
  r = Golden("divide").buffer(x, "x").buffer(o, "o").integer(3).go(1);
  EXPECT_TRUE(r.ok());
  EXPECT_EQ(o[15], 5);
  r = Golden("asserting").buffer(x, "x").go(1);
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_EQ(r.findings[0].kind, FindingKind::kAssertion);
  EXPECT_NE(r.findings[0].sentence.find("values must be positive"), std::string::npos);
  auto f = normal(16);
  r = Golden("overflow").buffer(f, "f").buffer(f, "g").integer(1 << 29).go(1);
  ASSERT_FALSE(r.findings.empty());
  EXPECT_EQ(r.findings[0].kind, FindingKind::kOffsetOverflow) << sentences(r);
}

// A kernel of one buffer %p of 64 floats and an i32 %n, written here.
std::vector<float> run_text(const std::string& body, int32_t n,
                            std::vector<float> memory = std::vector<float>(64)) {
  const auto kernel = Kernel::load("module {\n  tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {\n" + body +
                                   "\n    tt.return\n  }\n}\n");
  EXPECT_TRUE(kernel.ok()) << (kernel ? "" : kernel.error().message);
  if (!kernel) return memory;
  std::vector<Buffer> buffers(1);
  buffers[0].data = reinterpret_cast<std::byte*>(memory.data());
  buffers[0].bytes = static_cast<int64_t>(memory.size() * sizeof(float));
  Launch launch;
  launch.arguments = {Pointer{0, 0}, Scalar{static_cast<uint32_t>(n)}};
  const auto report = kernel->run(launch, buffers);
  EXPECT_TRUE(report.ok() && report->ok()) << (report ? sentences(*report) : report.error().message);
  return memory;
}

// The findings of a kernel of i32 pointers %p and %q and a number %n, run by some programs.
Report findings_of(const std::string& body, int64_t programs, int32_t n, double seconds = 20) {
  const auto kernel =
      Kernel::load("module {\n  tt.func public @k(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %n: i32) {\n" + body +
                   "\n    tt.return\n  }\n}\n");
  EXPECT_TRUE(kernel.ok()) << (kernel ? "" : kernel.error().message);
  if (!kernel) return {};
  std::vector<int32_t> memory[2] = {std::vector<int32_t>(64), std::vector<int32_t>(64)};
  std::vector<Buffer> buffers(2);
  for (size_t k = 0; k < 2; ++k) {
    buffers[k].data = reinterpret_cast<std::byte*>(memory[k].data());
    buffers[k].bytes = 256;
    buffers[k].name = k == 0 ? "p" : "q";
    buffers[k].element_bytes = 4;
  }
  Launch launch;
  launch.grid = {programs, 1, 1};
  launch.arguments = {Pointer{0, 0}, Pointer{1, 0}, Scalar{static_cast<uint32_t>(n)}};
  RunOptions options;
  options.deadline = Deadline::after(seconds);
  const auto report = kernel->run(launch, buffers, options);
  EXPECT_TRUE(report.ok()) << (report ? "" : report.error().message);
  return report ? *report : Report{};
}

TEST(Sanitizer, ALoopsStepMustBePositive) {
  const std::string body =
      "    %a = arith.constant 0 : i32\n    %b = arith.constant 4 : i32\n"
      "    scf.for %i = %a to %b step %n : i32 {\n      tt.store %p, %i : !tt.ptr<i32>\n    }\n";
  EXPECT_TRUE(findings_of(body, 1, 1).ok());
  for (const int step : {0, -1}) {
    const Report r = findings_of(body, 1, step);
    ASSERT_EQ(r.findings.size(), 1u);
    EXPECT_FALSE(r.timed_out);
    EXPECT_NE(r.findings[0].sentence.find("step of a loop"), std::string::npos) << sentences(r);
  }
}

// One program raises a flag behind its data, the other waits for it by reading.
TEST(Sanitizer, AVolatileReadWaitsForAnotherProgram) {
  const auto body = [](const std::string& wait) {
    return "    %zero = arith.constant 0 : i32\n    %one = arith.constant 1 : i32\n"
           "    %t = arith.constant true\n    %id = tt.get_program_id x : i32\n"
           "    %last = arith.cmpi eq, %id, %one : i32\n"
           "    scf.if %last {\n      tt.store %p, %n : !tt.ptr<i32>\n"
           "      %0 = tt.atomic_rmw exch, acq_rel, gpu, %q, %one, %t : (!tt.ptr<i32>, i32, i1) -> i32\n"
           "    } else {\n"
           "      scf.while : () -> () {\n        %f = tt.load %q" +
           wait +
           " : !tt.ptr<i32>\n"
           "        %go = arith.cmpi eq, %f, %zero : i32\n        scf.condition(%go)\n      } do {\n"
           "        scf.yield\n      }\n"
           "      %v = tt.load %p : !tt.ptr<i32>\n      %to = tt.addptr %p, %one : !tt.ptr<i32>, i32\n"
           "      tt.store %to, %v : !tt.ptr<i32>\n    }\n";
  };
  const Report waits = findings_of(body(" {isVolatile = true}"), 2, 7);
  EXPECT_TRUE(waits.ok()) << sentences(waits) << waits.timed_out;
  EXPECT_FALSE(findings_of(body(""), 2, 7, 1).ok());  // it waits until its time is over
}

TEST(Schedule, AnOrderIsAPermutationWithOtherEnds) {
  for (const int64_t n : {1, 2, 3, 7, 8, 9, 97, 132, 1000, 4096}) {
    const ProgramOrder ascending(n, false), shuffled(n, true);
    std::vector<bool> seen(static_cast<size_t>(n));
    for (int64_t k = 0; k < n; ++k) {
      EXPECT_EQ(ascending[k], k);
      seen[static_cast<size_t>(shuffled[k])] = true;
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), n);
    if (n < 2) continue;
    EXPECT_NE(shuffled[0], 0) << n;
    EXPECT_NE(shuffled[n - 1], n - 1) << n;
  }
}

// Each program but the last waits for the one after it: all must be resident at once.
TEST(Schedule, WhatWaitsForMoreThanAreResidentIsADeadlock) {
  for (const bool shuffled : {false, true}) {
    std::vector<int32_t> flags(400), o(400);
    std::vector<Buffer> buffers(2);
    for (size_t k = 0; k < 2; ++k) {
      buffers[k].data = reinterpret_cast<std::byte*>((k == 0 ? flags : o).data());
      buffers[k].bytes = 1600;
      buffers[k].element_bytes = 4;
    }
    const auto kernel = Kernel::load(*read_file(NEREID_SOURCE_DIR "/tests/ttir/golden/wait_for_next.ttir"));
    ASSERT_TRUE(kernel.ok());
    Launch launch;
    launch.grid = {400, 1, 1};
    launch.arguments = {Pointer{0, 0}, Pointer{1, 0}};
    RunOptions options;
    options.shuffled = shuffled;
    options.resident = 400;
    const auto fits = kernel->run(launch, buffers, options);
    ASSERT_TRUE(fits.ok() && fits->ok()) << sentences(*fits);
    for (int32_t k = 0; k < 400; ++k) EXPECT_EQ(o[static_cast<size_t>(k)], 400 - k);
    std::fill(flags.begin(), flags.end(), 0);
    options.resident = 132;
    const auto waits = kernel->run(launch, buffers, options);
    ASSERT_TRUE(waits.ok());
    EXPECT_FALSE(waits->timed_out);
    ASSERT_EQ(waits->findings.size(), 1u) << sentences(*waits);
    EXPECT_EQ(waits->findings[0].kind, FindingKind::kDeadlock);
  }
}

TEST(Executor, ScalarsStayScalars) {
  // A masked-off scalar load gives zero, a split of two elements two scalars.
  const auto m = run_text(
      "    %f = arith.constant false\n    %a = tt.load %p, %f : !tt.ptr<f32>\n    tt.store %p, %a : "
      "!tt.ptr<f32>\n"
      "    %x = arith.sitofp %n : i32 to f32\n    %j = tt.join %x, %a : f32 -> tensor<2xf32>\n"
      "    %l, %r = tt.split %j : tensor<2xf32> -> f32\n    %c = arith.constant 1 : i32\n"
      "    %q = tt.addptr %p, %c : !tt.ptr<f32>, i32\n    tt.store %q, %l : !tt.ptr<f32>\n",
      42, std::vector<float>(64, 3.0f));
  EXPECT_EQ(m[0], 0.0f);
  EXPECT_EQ(m[1], 42.0f);
  EXPECT_EQ(m[2], 3.0f);
}

TEST(Executor, TheAccumulatorMayBeAnOperand) {
  const auto m = run_text(
      "    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
      "    %s = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>\n    %a = tt.addptr %s, %i : "
      "tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
      "    %v = tt.load %a : tensor<64x!tt.ptr<f32>>\n    %m = tt.reshape %v : tensor<64xf32> -> "
      "tensor<8x8xf32>\n"
      "    %d = tt.dot %m, %m, %m : tensor<8x8xf32> * tensor<8x8xf32> -> tensor<8x8xf32>\n"
      "    %w = tt.reshape %d : tensor<8x8xf32> -> tensor<64xf32>\n    tt.store %a, %w : "
      "tensor<64x!tt.ptr<f32>>\n",
      0, std::vector<float>(64, 2.0f));
  for (const float v : m) EXPECT_EQ(v, 2.0f + 8 * 4.0f);
}

TEST(Executor, IntegersWrapLikeTheGpus) {
  // (i * 2^30) over 8 lanes wraps in i32; compared and stored as the wrapped values.
  const auto m = run_text(
      "    %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>\n    %k = arith.constant "
      "dense<1073741824> : tensor<8xi32>\n"
      "    %z = arith.constant dense<0> : tensor<8xi32>\n    %w = arith.muli %i, %k : tensor<8xi32>\n    %c "
      "= arith.cmpi slt, %w, %z : tensor<8xi32>\n"
      "    %f = arith.uitofp %c : tensor<8xi1> to tensor<8xf32>\n    %s = tt.splat %p : !tt.ptr<f32> -> "
      "tensor<8x!tt.ptr<f32>>\n"
      "    %a = tt.addptr %s, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>\n    tt.store %a, %f : "
      "tensor<8x!tt.ptr<f32>>\n",
      0);
  const std::vector<float> want = {0, 0, 1, 1, 0, 0, 1, 1};
  EXPECT_TRUE(std::equal(want.begin(), want.end(), m.begin()));
}

TEST(Executor, EndlessLoopsEndAtTheDeadline) {
  const auto kernel = Kernel::load(
      "module {\n  tt.func public @k(%n: i32) {\n    %t = arith.constant true\n    scf.while : () -> () {\n  "
      "    scf.condition(%t)\n"
      "    } do {\n      scf.yield\n    }\n    tt.return\n  }\n}\n");
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  Launch launch;
  launch.arguments = {Scalar{0}};
  RunOptions options;
  options.deadline = Deadline::after(0.05);
  const auto report = kernel->run(launch, {}, options);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->timed_out);
}

TEST(Executor, ArgumentsMustFit) {
  const auto text = read_file(NEREID_SOURCE_DIR "/tests/ttir/golden/divide.ttir");
  const auto kernel = Kernel::load(*text);
  Launch launch;
  launch.arguments = {Pointer{0, 0}, Pointer{0, 0}};
  std::vector<Buffer> buffers(1);
  const auto message = [&] {
    const auto r = kernel->run(launch, buffers);
    return r ? std::string() : r.error().message;
  };
  EXPECT_EQ(message(), "expected an argument for parameter d (i32)");
  launch.arguments = {Pointer{0, 0}, Pointer{3, 0}, Scalar{1}};
  EXPECT_EQ(message(), "parameter o: expected one of 1 buffers, got number 3");
  launch.arguments = {Scalar{0}, Pointer{0, 0}, Scalar{1}};
  EXPECT_EQ(message(), "parameter x: expected a pointer (!tt.ptr<i32>)");
}

TEST(Facts, ParametersAndBranches) {
  auto x = normal(1);
  Golden add("add_relu");
  const auto& p = add.kernel().parameters();
  ASSERT_EQ(p.size(), 4u);
  EXPECT_TRUE(p[0].read && !p[0].written);
  EXPECT_TRUE(!p[2].read && p[2].written);
  EXPECT_FALSE(add.kernel().branches_on_float_data());
  for (const char* blind : {"add_relu", "softmax", "matmul", "layer_norm"})
    EXPECT_FALSE(Golden(blind).kernel().moves_by_data()) << blind;
  // Branches, loops and assertions about what is loaded.
  for (const char* sees : {"last_arriver", "spin_lock", "wait_for_next", "asserting"})
    EXPECT_TRUE(Golden(sees).kernel().moves_by_data()) << sees;
  auto text = read_file(NEREID_SOURCE_DIR "/tests/ttir/golden/divide.ttir").value();
  EXPECT_FALSE(Kernel::load(text)->moves_by_data());  // what is loaded is divided by a parameter
  text.replace(text.find("divsi %4, %5"), 12, "divsi %5, %4");
  EXPECT_TRUE(Kernel::load(text)->moves_by_data());
  EXPECT_FALSE(add.kernel().uses_int_to_ptr());
  EXPECT_TRUE(Golden("last_arriver").kernel().parameters()[2].read);
}

TEST(Cost, OfAProductAndOfAnAddition) {
  auto x = normal(1), y = normal(1), o = normal(1);
  Cost c = Golden("add_relu").buffer(x, "x").buffer(y, "y").buffer(o, "o").integer(2500).cost(3);
  EXPECT_EQ(c.bytes_read, 20000);
  EXPECT_EQ(c.bytes_written, 10000);
  EXPECT_TRUE(c.exact);
  EXPECT_EQ(c.flops, 2 * 3 * 1024);
  c = Golden("matmul")
          .buffer(x, "a")
          .buffer(y, "b")
          .buffer(o, "c")
          .integer(256)
          .integer(128)
          .integer(64)
          .integer(64)
          .integer(128)
          .integer(128)
          .cost(4, 2);
  EXPECT_EQ(c.flops, 2.0 * 256 * 128 * 64);
  EXPECT_EQ(c.bytes_read, 4 * (256 * 64 + 64 * 128));
  EXPECT_EQ(c.bytes_written, 4 * 256 * 128);
  EXPECT_TRUE(c.exact);
}

}  // namespace
}  // namespace nereid::ttir
