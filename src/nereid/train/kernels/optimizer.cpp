#include "nereid/train/kernels/optimizer.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>

namespace nereid::train {
namespace {

using lm::Parameter;
using lm::Role;

bool is_muons(OptimizerSettings::Kind kind, Role role) {
  return kind == OptimizerSettings::Kind::kMuon && lm::is_layer_matrix(role);
}

bool is_decayed(Role role) {
  return lm::is_layer_matrix(role) || role == Role::kEmbedding || role == Role::kHead;
}

}  // namespace

at::Tensor nearly_orthogonal(const at::Tensor& matrices) {
  constexpr double kA = 3.4445, kB = -4.7750,
                   kC = 2.0315;  // the quintic's coefficients, and the number of steps, are the paper's
  constexpr int kSteps = 5;
  at::Tensor x = matrices.to(at::kBFloat16);
  const bool tall = x.size(1) > x.size(2);
  if (tall) x = x.mT();
  x = x / at::linalg_vector_norm(x, 2, at::IntArrayRef{1, 2}, true).clamp_min(1e-7);
  for (int i = 0; i < kSteps; ++i) {
    const at::Tensor gram = x.bmm(x.mT());
    x = at::baddbmm(x, at::baddbmm(gram, gram, gram, kB, kC), x, kA, 1);
  }
  return tall ? x.mT() : x;
}

int64_t range_border(const lm::ParameterLayout& layout, OptimizerSettings::Kind kind, int64_t element) {
  for (const Parameter& parameter : layout.parameters) {
    const int64_t end = parameter.offset + parameter.elements;
    if (element <= parameter.offset || element >= end || !is_muons(kind, parameter.role)) continue;
    return element - parameter.offset < end - element ? parameter.offset : end;
  }
  return element;
}

Optimizer::Optimizer(const lm::ParameterLayout& layout, const OptimizerSettings& settings, int64_t begin,
                     int64_t end, const at::TensorOptions& state)
    : settings_(settings) {
  for (const Parameter& parameter : layout.parameters) {
    const int64_t from = std::max(parameter.offset, begin),
                  to = std::min(parameter.offset + parameter.elements, end);
    if (from >= to) continue;
    if (is_muons(settings.kind, parameter.role)) {
      NEREID_CHECK(to - from == parameter.elements, "a whole matrix {}, got {} of its {} elements",
                   parameter.info.name, to - from, parameter.elements);
      matrices_[{parameter.info.shape[0], parameter.info.shape[1]}].push_back(from - begin);
      continue;
    }
    const bool decayed = is_decayed(parameter.role);
    // The gaps that align parameters are zeros with zero gradients: they may be within a piece.
    if (!pieces_.empty() && pieces_.back().decayed == decayed &&
        from - begin - (pieces_.back().offset + pieces_.back().elements) < lm::kAlignment)
      pieces_.back().elements = to - begin - pieces_.back().offset;
    else
      pieces_.push_back({from - begin, to - from, decayed});
  }
  first_ = at::zeros({end - begin}, state.dtype(at::kFloat));
  second_ = at::zeros({end - begin}, state.dtype(at::kFloat));
}

void Optimizer::step(const at::Tensor& master, const at::Tensor& gradient, double share) {
  const c10::NoGradGuard no_gradients;
  ++steps_;
  step_adamw(master, gradient, settings_.learning_rate * share);
  step_muon(master, gradient, settings_.muon_learning_rate * share);
}

void Optimizer::step_adamw(const at::Tensor& master, const at::Tensor& gradient, double learning_rate) {
  const at::Tensor steps = at::full({}, static_cast<double>(steps_), master.options());
  for (const bool decayed : {true, false}) {
    std::vector<at::Tensor> of_master, of_gradient, of_first, of_second, of_steps;
    for (const Piece& piece : pieces_) {
      if (piece.decayed != decayed) continue;
      const auto part = [&](const at::Tensor& all) { return all.narrow(0, piece.offset, piece.elements); };
      of_master.push_back(part(master)), of_gradient.push_back(part(gradient));
      of_first.push_back(part(first_)), of_second.push_back(part(second_)), of_steps.push_back(steps);
    }
    if (of_master.empty()) continue;
    at::_fused_adamw_(of_master, of_gradient, of_first, of_second, {}, of_steps, learning_rate,
                      settings_.beta1, settings_.beta2, decayed ? settings_.weight_decay : 0,
                      settings_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
  }
}

void Optimizer::step_offloaded(const at::Tensor& master, const at::Tensor& gradient,
                               const at::Tensor& weights, double share, int64_t most) {
  const c10::NoGradGuard no_gradients;
  ++steps_;
  const at::Tensor steps = at::full({}, static_cast<double>(steps_), gradient.options());
  at::Tensor buffers[3];
  for (at::Tensor& buffer : buffers) buffer = at::empty({most}, gradient.options());
  for (const Piece& piece : pieces_) {
    for (int64_t done = 0; done < piece.elements; done += most) {
      const int64_t offset = piece.offset + done, elements = std::min(most, piece.elements - done);
      const at::Tensor of_host[3] = {master.narrow(0, offset, elements), first_.narrow(0, offset, elements),
                                     second_.narrow(0, offset, elements)};
      at::Tensor own[3];
      for (int i = 0; i < 3; ++i) {
        own[i] = buffers[i].narrow(0, 0, elements);
        own[i].copy_(of_host[i], /*non_blocking=*/true);
      }
      at::_fused_adamw_({own[0]}, {gradient.narrow(0, offset, elements)}, {own[1]}, {own[2]}, {}, {steps},
                        settings_.learning_rate * share, settings_.beta1, settings_.beta2,
                        piece.decayed ? settings_.weight_decay : 0, settings_.epsilon, /*amsgrad=*/false,
                        /*maximize=*/false);
      weights.narrow(0, offset, elements).copy_(own[0]);
      for (int i = 0; i < 3; ++i) of_host[i].copy_(own[i], /*non_blocking=*/true);
    }
  }
}

const std::vector<Optimizer::Matrices>& Optimizer::matrices_of(const at::Tensor& master,
                                                               const at::Tensor& gradient) {
  if (viewed_master_ == master.data_ptr() && viewed_gradient_ == gradient.data_ptr() &&
      viewed_momentum_ == first_.data_ptr())
    return views_;
  views_.clear();
  for (const auto& [shape, offsets] : matrices_) {
    const auto [rows, columns] = shape;
    const auto parts = [rows, columns, &offsets](const at::Tensor& all) {
      std::vector<at::Tensor> found;
      for (const int64_t offset : offsets)
        found.push_back(all.narrow(0, offset, rows * columns).view({rows, columns}));
      return found;
    };
    views_.push_back({rows, columns, parts(gradient), parts(first_), parts(master)});
  }
  viewed_master_ = master.data_ptr(), viewed_gradient_ = gradient.data_ptr();
  viewed_momentum_ = first_.data_ptr();
  return views_;
}

void Optimizer::step_muon(const at::Tensor& master, const at::Tensor& gradient, double learning_rate) {
  for (const auto& [rows, columns, gradients, momenta, weights] : matrices_of(master, gradient)) {
    at::_foreach_lerp_(momenta, gradients, 1 - settings_.muon_momentum);
    // Contiguous, as the weights are: what is done to all at once asks for the same strides.
    const auto updates =
        nearly_orthogonal(at::stack(at::_foreach_lerp(gradients, momenta, settings_.muon_momentum)))
            .contiguous()
            .to(at::kFloat)
            .unbind();
    const double tall = std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
    at::_foreach_mul_(weights, 1 - learning_rate * settings_.weight_decay);
    at::_foreach_add_(weights, updates, -learning_rate * tall);
  }
}

}  // namespace nereid::train
