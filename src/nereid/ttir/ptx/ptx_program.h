// Inline PTX: the elementwise instructions that are known, in any combination.
//
//   "{ .reg .f32 t; mul.f32 t, $1, 0fBFB8AA3B; ex2.approx.f32 $0, t; }"  with "=f,f"
//
// is straight-line code on registers of its own and on those that the constraints name ($0, $1, ...: results
// first). It is translated once and run for every lane, or for every pack of lanes that share registers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/ttir/exec/elementwise/elementwise.h"

namespace nereid::ttir {

// What a PTX instruction works on: one number, or two halves of a register.
struct PtxType {
  Elem elem = Elem::kNone;  // kI1: a predicate
  bool is_signed = false;
  int halves = 1;
};

enum class PtxOp : uint8_t {
  kAbs,
  kAdd,
  kAnd,
  kBfe,
  kBfi,
  kBrev,
  kClz,
  kCopysign,
  kCos,
  kCvt,
  kCvtPack,
  kDiv,
  kEx2,
  kFma,
  kLg2,
  kLop3,
  kMax,
  kMaxNan,
  kMin,
  kMinNan,
  kMov,
  kMulHi,
  kMulLo,
  kMulWide,
  kMadHi,
  kMadLo,
  kMadWide,
  kNeg,
  kNot,
  kOr,
  kPack,
  kPopc,
  kPrmt,
  kRcp,
  kRsqrt,
  kSelp,
  kSetp,
  kShfLeft,
  kShfRight,
  kShl,
  kShr,
  kSin,
  kSlct,
  kSqrt,
  kSub,
  kTanh,
  kUnpack,
  kXor,
};

struct PtxStep {
  PtxOp op{};
  PtxType type, from;  // `from`: what kCvt converts, and what kSetp and kSlct compare
  Predicate compare = Predicate::kInvalid;
  bool flush = false, saturate = false, wrap = false;
  bool approximate = false, full = false;  // .approx; .full, of kDiv
  char rounding = 'n';                     // of kCvt: n z m p; upper case: to an integer, kept in a float
  std::vector<int> out, in;                // registers
};

class PtxProgram {
 public:
  // An error says which part is not understood.
  static Result<PtxProgram> parse(std::string_view assembly, std::string_view constraints);

  int results() const { return results_; }
  int operands() const { return operands_; }
  int registers() const { return static_cast<int>(initial_.size()); }
  // registers: as many as registers(); the results are the first, the operands follow them.
  void start(uint64_t* registers) const;
  void run(uint64_t* registers) const;

 private:
  friend class PtxParser;
  int results_ = 0, operands_ = 0;
  std::vector<uint64_t> initial_;  // immediates have registers, too
  std::vector<PtxStep> steps_;
};

}  // namespace nereid::ttir
