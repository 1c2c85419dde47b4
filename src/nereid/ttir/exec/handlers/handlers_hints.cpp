// What an author says of integers and addresses (tl.multiple_of, tl.max_contiguous). Triton makes wide
// accesses of it and checks nothing.
#include <fmt/format.h>

#include <algorithm>

#include "nereid/ttir/exec/affine.h"
#include "nereid/ttir/exec/handlers/handlers.h"
#include "nereid/ttir/exec/sanitizer.h"

namespace nereid::ttir::handlers {
namespace {

// No access is wider than 16 bytes.
int64_t at_most_16(int64_t divisibility) {
  return divisibility <= 0 ? 1 : std::min<int64_t>(16, divisibility & -divisibility);
}

// One dimension of a tile. Lanes that go up by more than one begin a run of neighbours, as the first does; an
// index that falls or stays has been wrapped or clamped, and what such lanes load is masked later.
class Run {
 public:
  // `unit`: of an address, the bytes of an element; else 1.
  Run(int64_t divisibility, int64_t contiguity, int64_t unit)
      : divisibility_(at_most_16(divisibility)), contiguity_(std::max<int64_t>(1, contiguity)), unit_(unit) {}

  // The sentence about lane k, which comes after the one before; empty where the hint holds.
  std::string at(int64_t k, int64_t before, int64_t value) const {
    if (k > 0 && value <= before + unit_) return "";
    if (k % contiguity_ != 0)
      return fmt::format("tl.max_contiguous says {}, but {} comes after {}", contiguity_, value, before);
    if (value % divisibility_ == 0) return "";
    return fmt::format("tl.multiple_of says {}, but {} is {}", divisibility_,
                       unit_ > 1 ? "the byte of a tensor" : "an integer", value);
  }

 private:
  int64_t divisibility_, contiguity_, unit_;
};

}  // namespace

void hint(Machine& m, const Instruction& i) {
  if (!m.context().sanitize) return;
  const auto& numbers = i.extra->numbers;
  const bool pointer = i.elem == Elem::kPointer;
  const int64_t unit = i.target;
  const auto value_of = [&](int64_t bits) { return pointer ? offset_of(bits) : bits; };
  Value& v = m.slot(i.in[0]);
  const auto check = [&](const Run& run, int64_t k, int64_t before, int64_t value) {
    const auto sentence = run.at(k, before, value);
    if (!sentence.empty()) report(m, FindingKind::kMisaligned, i.location, -1, 0, sentence);
    return sentence.empty();
  };
  if (v.form == Form::kUniform || i.rank == 0) {
    for (size_t d = 0; d < numbers.size() / 2; ++d)
      if (!check({numbers[d], 1, unit}, 0, 0, value_of(v.base))) return;
    return;
  }
  if (v.form == Form::kAffine && i.rank == 1 && v.stride[0] <= unit) {
    check({numbers[0], numbers[1], unit}, 0, 0, value_of(v.base));
    return;
  }
  const auto* lanes = m.dense(v, i.elem, i, i.lanes);
  const int bytes = elem_bytes(i.elem);
  int64_t step = i.lanes;
  for (size_t d = 0; d < static_cast<size_t>(i.rank); ++d) {
    const int64_t size = i.shape[d];
    step /= size;
    const Run run(numbers[d], numbers[numbers.size() / 2 + d], unit);
    for (int64_t k = 0; k < i.lanes; ++k) {
      const int64_t at = k / step % size;
      const int64_t value = value_of(canonical_bits(lanes + k * bytes, i.elem));
      const int64_t before = at == 0 ? 0 : value_of(canonical_bits(lanes + (k - step) * bytes, i.elem));
      if (!check(run, at, before, value)) return;
    }
  }
}

}  // namespace nereid::ttir::handlers
