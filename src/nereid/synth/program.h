// A program with every shape known: what is emitted, hashed, costed and judged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nereid/ops/applied.h"
#include "nereid/synth/sample/sampled_program.h"

namespace nereid::synth {

// A fresh input or the result of a step.
struct Ref {
  bool fresh = false;
  uint16_t index = 0;  // in Program::inputs or Program::steps
  bool operator==(const Ref&) const = default;
};

struct Input {
  ops::Shape shape;
  ops::Range range{};
  int64_t bound = 1;   // of indices: in [0, bound)
  int64_t summed = 1;  // of weights: the length that the contraction sums over
};

struct Step {
  ops::Applied applied;
  std::vector<Ref> operands;  // ops::operand_count of them
  int tap = 0;                // operand 1 is the value so many steps behind operand 0; 0: it is not
};

struct Program {
  std::vector<Input> inputs;
  std::vector<Step> steps;  // the last is a result
  int waiting = -1;         // the step whose result is the other one, where there are two

  const ops::Shape& shape(Ref ref) const {
    return ref.fresh ? inputs[ref.index].shape : steps[ref.index].applied.out;
  }
};

// Every size is made of the result's and the inner ones. Constants are the operators' first ones.
void resolve(const SampledProgram& sampled, const Space& space, Program& program);

// Of the graph alone: names, constants and code style make no difference, nor does the order in
// which independent steps or the operands of a commuting operator are written.
struct Hashes {
  uint64_t program = 0;    // with sizes: two programs of one hash are duplicates
  uint64_t structure = 0;  // without: all sizes of one graph are on the same side of a held-out split
};
Hashes hashes_of(const Program& program);

struct ProgramCost {
  double flops = 0, bytes = 0;  // bytes: of every step, as if each ran alone
};
ProgramCost cost_of(const Program& program);

}  // namespace nereid::synth
