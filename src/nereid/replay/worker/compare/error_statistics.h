// Systematic error distinguished from rounding: sums of an output's errors over slices of it, and the tests
// on them. docs/tolerance.md derives the tests and their rates of false alarms.
//
// Slices are the whole output, each index of each dimension, runs of adjacent elements, and elements whose
// truth has one sign and one binary exponent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nereid/replay/worker/compare/error_metrics.h"
#include "nereid/trace/trace.h"

namespace nereid::replay {

// Over the finite elements of a slice. Of a slice of one exponent only the count and `ulp2`, `e` and `e2` are
// used, and may be all that is summed.
struct TruthSums {
  double count = 0, t = 0, t2 = 0;
  double ulp2 = 0;  // of the squares of the truth's unit in the last place, in the output's dtype
};
// Of an answer's error e = answer - truth, over the same elements.
struct ErrorSums {
  double e = 0, e2 = 0, et = 0, e2t = 0, e2t2 = 0;
};

// What an error beyond rounding must exceed before it counts. Units: the output dtype's ulp.
struct StatisticsLimits {
  double energy = 3;       // times the larger of rounding's and the reference's sum of squares
  double energy_ulps = 0;  // a root mean square that is forgiven whatever the reference's is
  double bias_ulps = 1.0 / 16;
  double small_energy = 1;       // of epsilon times the output's scale, for elements much smaller than it
  double small_bias = 1.0 / 64;  // likewise, of the mean
  // Of the output's scale, in any slice: what float32 leaves of terms that cancel where the truth is nearly
  // zero.
  double residue = 0x1p-22;
  // Of the scale's square, in any slice: a sum of squares that hangs on a few elements, those at which TF32
  // decides whether a relu lets them pass.
  double few_elements = 0;
};
// `coarse`: the answer is rounded to 16 bits or less somewhere, and rounding is what its errors are made of.
// `near_one`: it goes through functions that an approximate instruction gives relative to one (tanh.approx).
StatisticsLimits statistics_limits(trace::DType type, bool coarse, bool near_one);

struct SystematicError {
  std::string text;             // "in rows 3: ..."; one sentence
  double found = 0, limit = 0;  // in the unit of the test
};

class ErrorStatistics {
 public:
  // `scale`: the root mean square of the truth. `by_operators`: on a CPU, too, as where the tensors are on a
  // GPU.
  ErrorStatistics(std::vector<int64_t> sizes, trace::DType type, double scale, bool by_operators = false);

  // Ranges come one after the other; `first` is the flat index of their first element.
  void add_truth(const ElementRange& range, int64_t first);
  using Sums = std::vector<ErrorSums>;
  Sums zeros() const { return Sums(truth_.size()); }
  void add_error(Sums& sums, const ElementRange& range, const at::Tensor& answer, int64_t first) const;
  // add_truth, and add_error of the range's own and of its got, in the same passes. False, and nothing added,
  // where no kernels of our own can.
  bool add_all(const ElementRange& range, Sums& own, Sums& got);

  // An answer that is right. `kNoise`: its errors are rounding of any sign. `kShift`: it may err to one side,
  // as truncated TF32 operands and rounded scalars do: a sum between its own and the truth's is right, too,
  // and so is one beyond either by half the distance of the two.
  enum class Sample { kNoise, kShift };
  void add_sample(const Sums& sums, Sample kind = Sample::kNoise);

  // The worst that the answer's sums show, where they show any.
  std::optional<SystematicError> check(const Sums& got, const StatisticsLimits& limits) const;

 private:
  struct Family {
    enum class Kind { kWhole, kDimension, kRun, kValues } kind{};
    int dimension = -1;
    int64_t inner = 1, size = 1, per = 1;  // of element i: (i / inner) % size / per
    int64_t first = 0, groups = 1;         // in the sums
  };
  struct Range {  // from 0 to what the shifted samples have
    double low = 0, high = 0;
    void add(double sum) { low = std::min(low, sum), high = std::max(high, sum); }
    // How far off a sum of that sign may be.
    double edge(double sum) const { return (sum > 0 ? high : -low) + (high - low) / 2; }
  };
  struct Samples {  // of one slice, over the samples
    double bias2 = 0, gain2 = 0, slope2 = 0, largest_energy = 0;
    Range bias, gain, slope;
  };
  struct Typical {  // of one family: medians over its slices
    double energy = 0, bias = 0, gain = 0, slope = 0;
  };
  struct Test;

  void add(Family::Kind kind, int dimension, int64_t inner, int64_t size, int64_t groups);
  int64_t value_group(double truth) const;
  Typical typical(const Family& family) const;
  // Of values far smaller than all others the scale is their own: by exponent, the output's where it is that.
  std::vector<double> scales_of_values(const Family& family) const;
  void check_slice(const Family& family, const Typical& typical, int64_t slice, double scale, const Sums& got,
                   const StatisticsLimits& limits, std::optional<SystematicError>& worst) const;
  std::string name(const Family& family, int64_t slice) const;
  template <typename Sum, typename Row>
  void walk(std::vector<Sum>& into, const ElementRange& range, int64_t first, Row row) const;
  template <typename Sum, typename Row>
  void walk_part(std::vector<Sum>& into, int64_t begin, int64_t end, int64_t first, Row row) const;
  // By kernels of our own, where the range is the whole output: calls body(kernels, families). False where
  // they cannot.
  template <typename Body>
  bool with_kernels(const ElementRange& range, const at::Tensor& answer, int64_t first, Body body) const;
  // By PyTorch's operators, where the tensors are on a GPU.
  at::Tensor groups_of(const Family& family, const ElementRange& range, int64_t first) const;
  void add_on_device(std::vector<TruthSums>& into, const ElementRange& range, int64_t first) const;
  void add_on_device(Sums& into, const ElementRange& range, const at::Tensor& answer, int64_t first) const;

  std::vector<int64_t> sizes_;
  trace::DType type_;
  double scale_;
  bool by_operators_;
  int64_t elements_ = 1, row_ = 1;
  std::vector<Family> families_;
  std::vector<TruthSums> truth_;
  std::vector<Samples> samples_;
  int sample_count_ = 0;  // of kNoise
  bool shifted_ = false;  // there are samples of kShift
};

}  // namespace nereid::replay
