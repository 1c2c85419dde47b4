// One program after another: drawn, judged, hashed and written.
#pragma once

#include <string>

#include "nereid/synth/program.h"
#include "nereid/synth/sample/sampler.h"
#include "nereid/synth/write/emit.h"

namespace nereid::synth {

enum class Outcome : uint8_t {
  kMade,
  kNoSize,      // halved until nothing, or only one element, was left of an axis
  kDegenerate,  // constant, saturated, vanishing or overflowing for nearly all inputs (values.h)
};

struct Made {
  uint64_t index = 0;  // of the program, for its seed
  int sizes = 0;       // 0: as drawn; k: the k-th later sizes of the same wiring
  Outcome outcome = Outcome::kMade;
  Program program;
  Hashes hashes;
  CodeStyle style;
  std::string code;
  Layout layout;  // of the code
};

struct MakerConfig {
  int length = 1;
  Uniform uniform = Uniform::kSequences;
  uint64_t seed = 0;
  double free_sizes =
      0;  // the share of programs whose sizes are any numbers of their classes, not the grid's
  double free_forms =
      0;  // the share of programs whose windows and layers are any that PyTorch has (layer_options.h)
  Generation generation = synth::generation;
};

// (seed, index, sizes) decides everything, code included. One for each thread.
class Maker {
 public:
  Maker(const Space& space, const MakerConfig& config);
  const Sampler& sampler() const { return sampler_; }
  // All but the code, which `write` adds.
  void draw(uint64_t index, int sizes, Made& made);
  void write(Made& made) const;

 private:
  void free_forms(Rng& rng, double most, Program& program);

  const Space& space_;
  const MakerConfig config_;
  Sampler sampler_;
  SampledProgram sampled_, freed_;
  Program freed_program_;
};

// Whether a structure is on the held-out side, of which `share` (0 to 1) of all structures are. It depends on
// the structure alone.
bool held_out(uint64_t structure, double share);

}  // namespace nereid::synth
