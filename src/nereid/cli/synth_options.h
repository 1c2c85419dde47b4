// The options of `nereid synth`, and what both of its modes (programs, pairs) derive from them.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "nereid/base/json.h"
#include "nereid/cli/command.h"
#include "nereid/synth/coverage.h"
#include "nereid/synth/sample/maker.h"

namespace nereid::cli {

struct SynthOptions {
  int length = 0;  // number of operators of each program
  uint64_t count = 100, seed = 0;
  std::vector<std::string> only{};
  std::string uniform = "sequences", split = "all", output{}, max_elements{},
              max_work{};                                    // empty: by default
  std::string min_bytes{}, max_bytes{};                      // empty: any
  double parsed_min_bytes = 0, parsed_max_bytes = INFINITY;  // these, read
  double held_out = 0, free_sizes = 0, free_forms = 0;
  int later_sizes = 0, threads = 0;
  bool pairs = false, forward = false;
  int variants = 4, wordings = 4;
  bool brief = false;
  uint64_t verify_every = 1;
  std::string policy = "strict", check = "estimate";
};

inline constexpr const char* kMaxElements = "2^24";
inline constexpr const char* kMaxWork = "2^30";
// What every variant of a task is tried on many times over, on a CPU.
inline constexpr const char* kMaxElementsOfPairs = "2^15";
inline constexpr const char* kMaxWorkOfPairs = "2^21";
// Draws in a row that give nothing new before the space is called exhausted.
inline constexpr uint64_t kPatience = 200'000;

Result<synth::Space> space_of(const SynthOptions& options);
synth::MakerConfig maker_config(const SynthOptions& options);
// Reads min_bytes and max_bytes.
Status read_bytes(SynthOptions& options);
bool is_in_split(const SynthOptions& options, const synth::Made& made);
bool is_in_size_range(const SynthOptions& options, const synth::Made& made);
// "1 operator", "3 operators".
std::string operators_text(int count);
// The JSON fields of a program next to its text.
Json line_of(const SynthOptions& options, const synth::Made& made);

// How a run ended: printed on stdout (`report`, with --json and -o), or on stderr.
struct SynthEnd {
  Json report{};
  std::string text{};  // lines
  const synth::Coverage* coverage = nullptr;
  uint64_t reached = 0;  // of options.count
  std::string gave{};    // what those did: "were made"
  bool exhausted = false, interrupted = false;
  std::string interruption = "interrupted";
};
Result<Answer> report_end(const SynthOptions& options, bool json, const SynthEnd& end);

Result<Answer> make_pairs(const SynthOptions& options, bool json);

}  // namespace nereid::cli
