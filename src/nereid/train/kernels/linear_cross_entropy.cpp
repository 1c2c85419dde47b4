#include "nereid/train/kernels/linear_cross_entropy.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "nereid/lm/decoder/device.h"
#include "nereid/train/data/batch.h"

namespace nereid::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// PyTorch's operators make float32 of the logits, and several copies. Ours work in place, on bfloat16: 2 GB;
// and for each chunk the sum of the head's gradients is read and written, which is more than the logits where
// there are many words and few rows.
constexpr int64_t kLogitsAtOnce = int64_t{1} << 27, kLogitsAtOnceInPlace = int64_t{1} << 30, kRowsInStep = 64;

int64_t chunk_of(const at::Tensor& weight, int64_t chunk, bool in_place = false) {
  return chunk > 0 ? chunk : micro_batch_size(weight.size(0), in_place);
}

// The rows that have a target, and those targets.
struct Learnt {
  at::Tensor rows, targets;  // [n], int64
};
Learnt learnt_of(const at::Tensor& targets, at::Device device) {
  const at::Tensor rows = (targets != kNoTarget).nonzero().squeeze(1);
  const at::Tensor wanted = targets.index_select(0, rows);
  if (targets.device() == device) return {rows, wanted};
  return {lm::sent_to(rows, device), lm::sent_to(wanted, device)};
}

// Of one chunk: the logits in float32, and their logarithmic sums [n, 1].
struct Chunk {
  at::Tensor logits, sums;
};
Chunk chunk_logits(const at::Tensor& hidden, const at::Tensor& weight) {
  at::Tensor logits = at::linear(hidden, weight).to(at::kFloat);
  at::Tensor sums = logits.logsumexp(1, true);
  return {std::move(logits), std::move(sums)};
}

// What gradient the logits have where log softmax at the targets has the gradient `of_target` [n]; the
// logits' memory is used.
at::Tensor logit_gradient(Chunk chunk, const at::Tensor& targets, const at::Tensor& of_target,
                          at::ScalarType type) {
  at::Tensor gradient = chunk.logits.sub_(chunk.sums).exp_().mul_(-of_target.unsqueeze(1));
  gradient.scatter_add_(1, targets.unsqueeze(1), of_target.unsqueeze(1));
  return gradient.to(type);
}

struct Gradients {
  at::Tensor hidden, weight;  // of the learnt rows, and float32
  Gradients(const at::Tensor& rows, const at::Tensor& of_weight)
      : hidden(at::empty_like(rows)),
        weight(at::zeros(of_weight.sizes(), of_weight.options().dtype(at::kFloat))) {}
  void add(int64_t begin, int64_t end, const at::Tensor& logit_gradient, const at::Tensor& rows,
           const at::Tensor& of_weight) {
    at::Tensor part = hidden.slice(0, begin, end);
    at::mm_out(part, logit_gradient, of_weight);
    weight.add_(logit_gradient.t().matmul(rows));
  }
};

class CrossEntropy : public torch::autograd::Function<CrossEntropy> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& weight,
                            const at::Tensor& targets, double scale, int64_t chunk, bool want_gradients,
                            int64_t operators) {
    auto* const own = reinterpret_cast<lm::Operators*>(operators);
    const Learnt learnt = learnt_of(targets, hidden.device());
    const at::Tensor rows = hidden.index_select(0, learnt.rows);
    at::Tensor loss = at::zeros({}, hidden.options().dtype(at::kFloat));
    std::optional<Gradients> gradients;
    if (want_gradients) gradients.emplace(rows, weight);
    for (int64_t begin = 0; begin < rows.size(0); begin += chunk) {
      const int64_t end = std::min(begin + chunk, rows.size(0));
      const at::Tensor part = rows.slice(0, begin, end), wanted = learnt.targets.slice(0, begin, end);
      if (own != nullptr) {
        const at::Tensor logits = at::linear(part, weight);
        loss -=
            own->token_losses(logits, wanted, at::full({end - begin}, -scale, loss.options())).sum() * scale;
        if (gradients) gradients->add(begin, end, logits, part, weight);
        continue;
      }
      Chunk logits = chunk_logits(part, weight);
      loss += (logits.sums - logits.logits.gather(1, wanted.unsqueeze(1))).sum() * scale;
      if (!gradients) continue;
      const at::Tensor of_target = at::full({end - begin}, -scale, loss.options());
      gradients->add(begin, end, logit_gradient(std::move(logits), wanted, of_target, rows.scalar_type()),
                     part, weight);
    }
    if (gradients) {
      const at::Tensor of_hidden = at::zeros_like(hidden).index_copy_(0, learnt.rows, gradients->hidden);
      context->save_for_backward({of_hidden, gradients->weight.to(weight.scalar_type())});
    }
    return loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor factor = gradients[0].to(saved[0].scalar_type());
    return {saved[0] * factor, saved[1] * factor, {}, {}, {}, {}, {}};
  }
};

class Scores : public torch::autograd::Function<Scores> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& weight,
                               const at::Tensor& targets, int64_t chunk) {
    const Learnt learnt = learnt_of(targets, hidden.device());
    const auto options = hidden.options().dtype(at::kFloat);
    const int64_t count = learnt.rows.size(0);
    const at::Tensor found = at::empty({count}, options), spread = at::empty({count}, options);
    for (int64_t begin = 0; begin < count; begin += chunk) {
      const int64_t end = std::min(begin + chunk, count);
      const Chunk part = chunk_logits(hidden.index_select(0, learnt.rows.slice(0, begin, end)), weight);
      found.slice(0, begin, end)
          .copy_((part.logits.gather(1, learnt.targets.slice(0, begin, end).unsqueeze(1)) - part.sums)
                     .squeeze(1));
      const at::Tensor logs = part.logits - part.sums;
      // A logit of -inf has no share.
      spread.slice(0, begin, end).copy_(-(logs.exp() * logs.nan_to_num()).sum(1));
    }
    context->save_for_backward({hidden, weight, targets});
    context->saved_data["chunk"] = chunk;
    const auto spread_out = [&](const at::Tensor& values) {
      return at::zeros({hidden.size(0)}, options).index_copy_(0, learnt.rows, values);
    };
    variable_list results = {spread_out(found), spread_out(spread)};
    context->mark_non_differentiable({results[1]});
    return results;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &hidden = saved[0], &weight = saved[1];
    const int64_t chunk = context->saved_data["chunk"].toInt();
    const Learnt learnt = learnt_of(saved[2], hidden.device());
    const at::Tensor rows = hidden.index_select(0, learnt.rows),
                     wanted = gradients[0].index_select(0, learnt.rows);
    Gradients found(rows, weight);
    for (int64_t begin = 0; begin < rows.size(0); begin += chunk) {
      const int64_t end = std::min(begin + chunk, rows.size(0));
      const at::Tensor part = rows.slice(0, begin, end);
      found.add(begin, end,
                logit_gradient(chunk_logits(part, weight), learnt.targets.slice(0, begin, end),
                               wanted.slice(0, begin, end), rows.scalar_type()),
                part, weight);
    }
    return {at::zeros_like(hidden).index_copy_(0, learnt.rows, found.hidden),
            found.weight.to(weight.scalar_type()),
            {},
            {}};
  }
};

void check_shapes(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets) {
  NEREID_CHECK(hidden.dim() == 2 && weight.dim() == 2 && hidden.size(1) == weight.size(1) &&
                   targets.dim() == 1 && targets.size(0) == hidden.size(0),
               "hidden [tokens, hidden_size], weight [vocab, hidden_size], targets [tokens], got {}, {} and "
               "{} dimensions of {}, {} and {}",
               hidden.dim(), weight.dim(), targets.dim(), hidden.numel(), weight.numel(), targets.numel());
}

}  // namespace

int64_t micro_batch_size(int64_t vocab, bool in_place) {
  return std::max<int64_t>((in_place ? kLogitsAtOnceInPlace : kLogitsAtOnce) / vocab / kRowsInStep, 1) *
         kRowsInStep;
}

at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                                double scale, int64_t chunk, lm::Operators* operators) {
  check_shapes(hidden, weight, targets);
  const bool want_gradients =
      c10::GradMode::is_enabled() && (hidden.requires_grad() || weight.requires_grad());
  return CrossEntropy::apply(hidden, weight, targets, scale, chunk_of(weight, chunk, operators != nullptr),
                             want_gradients, reinterpret_cast<int64_t>(operators));
}

TokenScores score_tokens(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                         int64_t chunk) {
  check_shapes(hidden, weight, targets);
  const auto results = Scores::apply(hidden, weight, targets, chunk_of(weight, chunk));
  return {results[0], results[1]};
}

}  // namespace nereid::train
