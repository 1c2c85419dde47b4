// What every kernel of a recurrent layer's steps has in its text: pointers and masks of samples and units,
// the gates that the inputs give, the next state.
#pragma once

#include <string>
#include <vector>

#include "nereid/compiler/codegen/emit.h"
#include "nereid/compiler/codegen/emit_expr.h"

namespace nereid::compiler {

class RecurrenceLines {
 public:
  RecurrenceLines(Graph& graph, const TileKernel& kernel, const std::string& name);

 protected:
  void line(const std::string& text) { lines_.push_back(indent_ + text); }
  std::string pointer(TensorId id) { return names_.pointer(graph_, id); }
  // Of a tensor [batch, hidden].
  std::string at_unit(TensorId id);
  int64_t unit_tiles() const { return (of_.hidden + block_n_ - 1) / block_n_; }
  int64_t programs() const { return (of_.batch + block_m_ - 1) / block_m_ * unit_tiles(); }
  bool is_half() const { return stored_ == DType::kF16 || stored_ == DType::kBF16; }

  // Empty where all of a block exists.
  std::string sample_mask() const;
  std::string unit_mask() const;
  // `conditions` that are not empty, as arguments of a load and of a store.
  static std::string load_mask(const std::vector<std::string>& conditions);
  static std::string store_mask(const std::vector<std::string>& conditions);

  // Names of the program's samples [BLOCK_M, 1] and units [1, BLOCK_N], `pid` of its tile.
  void begin();
  void load_biases();       // "bias_GATE", [1, BLOCK_N]
  void load_input_gates();  // "GATE", [BLOCK_M, BLOCK_N] of `step`
  void add_biases();        // to "from_GATE", what the hidden state gives
  // "hidden", and "cell" of an LSTM, from those before, "GATE" and "from_GATE".
  void next_cell();
  void next_hidden();

  Graph& graph_;
  const TileKernel& kernel_;
  const Node node_;
  const Recurrence of_;
  const DType stored_;
  std::vector<std::string> gates_;
  int64_t block_m_ = 16, block_n_ = 16, block_k_ = 16;
  std::string indent_;
  KernelNames names_;
  std::vector<std::string> lines_;
  KernelText out_;
};

// All steps in one cooperative launch (emit_persistent_recurrence.cpp): how it is cut, and how long a step
// takes.
struct PersistentTile {
  int64_t m = 0, n = 0, k = 0;  // samples and units of a program, terms of a product at once
  int warps = 4;
  int ahead = 0;              // blocks of the state (rolled: of both factors) that are loaded early
  bool rolled = false;        // a loop over the terms loads the weights, too, in each step
  bool weights_left = false;  // the weights are the left factor: [gates * units, k] times [k, samples]
  double seconds = 0;         // a step
};
// Nothing where the weights do not fit the shared memory of as many programs as are resident together, or
// where a launch for each step takes less.
std::optional<PersistentTile> persistent_tile(const Recurrence& of, const Node& node, DType stored,
                                              const KernelChoice& choice, const Target& target);
// Ways to cut such a kernel that fit.
std::vector<KernelChoice> persistent_alternatives(const Recurrence& of, const Node& node, DType stored,
                                                  const Target& target);
KernelText emit_persistent_recurrence(Graph& graph, const TileKernel& kernel, const std::string& name,
                                      const PersistentTile& tile);
// Seconds of one step as a launch of its own, with its launch.
double step_launch_seconds(const Recurrence& of, int64_t element_bytes, const Target& target);

}  // namespace nereid::compiler
