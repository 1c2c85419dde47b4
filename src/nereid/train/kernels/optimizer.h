// AdamW and Muon over one range of a model's flat buffer of parameters, in float32.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <map>
#include <utility>
#include <vector>

#include "nereid/lm/checkpoint/parameters.h"
#include "nereid/train/run_file.h"

namespace nereid::train {

// Muon (Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024) makes a matrix's
// averaged gradient nearly orthogonal: five Newton-Schulz steps in bfloat16, as torch.optim.Muon does.
// matrices: [number, rows, columns], float32, each for itself; the result is bfloat16.
at::Tensor nearly_orthogonal(const at::Tensor& matrices);

// Where the range that begins near `element` may begin: not within a matrix that Muon treats.
int64_t range_border(const lm::ParameterLayout& layout, OptimizerSettings::Kind kind, int64_t element);

class Optimizer {
 public:
  // For elements [begin, end) of the flat buffer; both are borders. `state`: where the moments are.
  Optimizer(const lm::ParameterLayout& layout, const OptimizerSettings& settings, int64_t begin, int64_t end,
            const at::TensorOptions& state);

  // One step. master, gradient: [end - begin], float32; `share` of the peak learning rate.
  void step(const at::Tensor& master, const at::Tensor& gradient, double share);

  // The same of AdamW alone where master and moments are the host's: piece by piece of at most `most`
  // elements they are copied to the gradient's device and back; `weights`, [end - begin], become what the
  // master is.
  void step_offloaded(const at::Tensor& master, const at::Tensor& gradient, const at::Tensor& weights,
                      double share, int64_t most = int64_t{1} << 26);

  // What a checkpoint keeps: [end - begin], float32, and how many steps were done.
  at::Tensor& first() { return first_; }    // AdamW's mean of gradients, Muon's momentum
  at::Tensor& second() { return second_; }  // AdamW's mean of squares
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  struct Piece {
    int64_t offset, elements;  // from the range's beginning
    bool decayed;
  };
  // All matrices of one shape, each a view.
  struct Matrices {
    int64_t rows, columns;
    std::vector<at::Tensor> gradients, momenta, weights;
  };
  const std::vector<Matrices>& matrices_of(const at::Tensor& master, const at::Tensor& gradient);
  void step_adamw(const at::Tensor& master, const at::Tensor& gradient, double learning_rate);
  void step_muon(const at::Tensor& master, const at::Tensor& gradient, double learning_rate);

  OptimizerSettings settings_;
  std::vector<Piece> pieces_;  // AdamW's; neighbours that are treated alike are one
  // Muon's: where those of one shape (rows, columns) begin.
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> matrices_;
  at::Tensor first_, second_;
  // Kept for the tensors that they are of: a GPU waits while hundreds of views are made.
  std::vector<Matrices> views_;
  const void *viewed_master_ = nullptr, *viewed_gradient_ = nullptr, *viewed_momentum_ = nullptr;
  int64_t steps_ = 0;
};

}  // namespace nereid::train
