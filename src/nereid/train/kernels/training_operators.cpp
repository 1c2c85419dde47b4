#include "nereid/train/kernels/training_operators.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <sstream>

#include "nereid/base/check.h"

namespace nereid::train {

using lm::build_kernels, lm::KernelArgument, lm::KernelRequest, lm::padded;

namespace {

constexpr int64_t kGateColumns = 1024;  // columns of the gate that a program does
constexpr int64_t kLossTile = 8192;     // logits
constexpr int kLossWarps = 16;
constexpr int64_t kTurnedRows = 32;  // heads of tokens
// Programs that gather a gradient by a weight, each over many rows; each leaves one row of what is then added
// up. 132 is an H200's processors.
constexpr int64_t kNormPrograms = 16 * 132, kTurnPrograms = 4 * 132;

enum Kernel : size_t {
  kTokenLosses,
  kGates,
  kGatesBackward,
  kSumAndNorm,
  kNorm,  // of one summand, and so is kNormBackward
  kSumAndNormBackward,
  kNormBackward,
  kTurn,
  kTurnBackward,
  kAttention,
  kAttentionQueries,
  kAttentionKeys
};

int64_t pieces(int64_t n, int64_t each) { return (n + each - 1) / each; }
int32_t narrow(int64_t n) {
  NEREID_CHECK(n <= std::numeric_limits<int32_t>::max(), "a number of 32 bits, got {}", n);
  return static_cast<int32_t>(n);
}

class KernelOperators : public lm::Operators {
 public:
  KernelOperators(const lm::Config& config, const AttentionTiles& tiles, lm::Launcher& launcher, size_t first)
      : config_(config), launcher_(launcher), first_(first), tiles_(tiles) {}

  at::Tensor attend(const at::Tensor& joined, const at::Tensor& query_norm, const at::Tensor& key_norm,
                    const lm::Rotation& rotation, const lm::Documents& documents) override;
  at::Tensor gated(const at::Tensor& joined) override;
  lm::Normed add_and_norm(const at::Tensor& residual, const at::Tensor& added,
                          const at::Tensor& weight) override;
  at::Tensor token_losses(const at::Tensor& logits, const at::Tensor& targets,
                          const at::Tensor& weights) override {
    NEREID_CHECK(logits.is_contiguous() && logits.size(1) == config_.vocab_size, "rows of {} logits",
                 config_.vocab_size);
    auto found = at::empty({logits.size(0)}, weights.options());
    launch(kTokenLosses, {logits.size(0), 1, 1}, {logits, targets.contiguous(), weights.contiguous(), found});
    return found;
  }

  // What follows is without gradients.
  struct Heads {
    at::Tensor joined;                // [tokens, heads + 2 * key_value_heads, head_dim]
    at::Tensor query_norm, key_norm;  // [head_dim]; any others where the model has none
    at::Tensor cosines, sines;        // [tokens, 1, head_dim / 2], float32
  };
  at::Tensor turned(const Heads& heads) {
    const int64_t tokens = heads.joined.size(0), rows = tokens * both();
    auto result = at::empty({tokens, both(), config_.head_dim}, heads.joined.options());
    launch(kTurn, {pieces(rows, kTurnedRows), 1, 1},
           {heads.joined, heads.query_norm, heads.key_norm, heads.cosines, heads.sines, result, narrow(rows),
            epsilon()});
    return result;
  }
  // Writes the gradients of joined queries and keys; the result is the norms', [2, head_dim], float32.
  at::Tensor turned_backward(const at::Tensor& of_turned, const Heads& heads, const at::Tensor& of_joined) {
    const int64_t rows = of_turned.size(0) * both(),
                  programs = std::min(kTurnPrograms, pieces(rows, kTurnedRows));
    auto of_norms = at::empty({programs, 2, config_.head_dim}, heads.cosines.options());
    launch(kTurnBackward, {programs, 1, 1},
           {of_turned, heads.joined, heads.query_norm, heads.key_norm, heads.cosines, heads.sines, of_joined,
            of_norms, narrow(rows), narrow(programs), epsilon()});
    return config_.query_key_norm() ? of_norms.sum(0) : at::Tensor();
  }
  struct Attended {
    at::Tensor result;   // [tokens, heads, head_dim]
    at::Tensor logsums;  // [heads, tokens], float32
  };
  Attended attended(const at::Tensor& turned, const at::Tensor& joined, const at::Tensor& starts) {
    const int64_t tokens = joined.size(0);
    Attended found{at::empty({tokens, config_.heads, config_.head_dim}, joined.options()),
                   at::empty({config_.heads, tokens}, joined.options().dtype(at::kFloat))};
    launch(kAttention, {config_.heads, pieces(tokens, tiles_.forward.queries), 1},
           {turned, joined, starts, found.result, found.logsums, narrow(tokens), scale()});
    return found;
  }
  // Writes the gradients of joined values; the result is turned's.
  at::Tensor attended_backward(const at::Tensor& gradient, const at::Tensor& turned, const at::Tensor& joined,
                               const lm::Documents& documents, const Attended& found,
                               const at::Tensor& of_joined) {
    const int64_t tokens = joined.size(0);
    auto of_turned = at::empty_like(turned), dots = at::empty_like(found.logsums);
    launch(kAttentionQueries, {config_.heads, pieces(tokens, tiles_.of_queries.queries), 1},
           {gradient, turned, joined, documents.starts, found.result, found.logsums, dots, of_turned,
            narrow(tokens), scale()});
    launch(kAttentionKeys, {config_.key_value_heads, pieces(tokens, tiles_.of_keys.keys), 1},
           {gradient, turned, joined, documents.ends, found.logsums, dots, of_turned, of_joined,
            narrow(tokens), scale()});
    return of_turned;
  }
  lm::Normed summed_and_normed(const at::Tensor& residual, const at::Tensor& added,
                               const at::Tensor& weight) {
    const bool two = added.defined();
    lm::Normed found{two ? at::empty_like(residual) : residual, at::empty_like(residual)};
    launch(two ? kSumAndNorm : kNorm, {residual.size(0), 1, 1},
           {residual, two ? added : residual, weight, found.sum, found.normed, epsilon()});
    return found;
  }
  // The gradients of a summand and of the weight. `passed`: the sum's own, or undefined.
  std::pair<at::Tensor, at::Tensor> normed_backward(const at::Tensor& gradient, const at::Tensor& passed,
                                                    const at::Tensor& sum, const at::Tensor& weight) {
    const int64_t rows = sum.size(0), programs = std::min(kNormPrograms, rows);
    auto of_sum = at::empty_like(sum),
         of_weight = at::empty({programs, sum.size(1)}, sum.options().dtype(at::kFloat));
    launch(passed.defined() ? kSumAndNormBackward : kNormBackward, {programs, 1, 1},
           {gradient, passed.defined() ? passed : gradient, sum, weight, of_sum, of_weight, narrow(rows),
            narrow(programs), epsilon()});
    return {of_sum, of_weight.sum(0).to(weight.scalar_type())};
  }
  void launch(size_t kernel, const std::array<int64_t, 3>& grid,
              const std::vector<KernelArgument>& arguments) {
    launcher_.launch(first_ + kernel, grid, arguments);
  }
  std::array<int64_t, 3> gate_grid(int64_t tokens) const {
    return {tokens, pieces(config_.intermediate_size, kGateColumns), 1};
  }
  const lm::Config& config() const { return config_; }

 private:
  int64_t both() const { return config_.heads + config_.key_value_heads; }
  float epsilon() const { return static_cast<float>(config_.rms_norm_eps); }
  float scale() const {
    return static_cast<float>(std::numbers::log2e / std::sqrt(static_cast<double>(config_.head_dim)));
  }

  lm::Config config_;
  lm::Launcher& launcher_;
  size_t first_;
  AttentionTiles tiles_;
};

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// The weights hold the operators for as long as there is a backward pass to come, so a plain pointer to them
// is kept.
KernelOperators& operators_of(AutogradContext* context) {
  return *reinterpret_cast<KernelOperators*>(context->saved_data["operators"].toInt());
}

struct Attend : torch::autograd::Function<Attend> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given, const at::Tensor& query_norm,
                            const at::Tensor& key_norm, const at::Tensor& cosines, const at::Tensor& sines,
                            const at::Tensor& starts, const at::Tensor& ends, int64_t operators) {
    context->saved_data["operators"] = operators;
    auto& own = operators_of(context);
    const auto joined = given.contiguous();
    const auto turned = own.turned({joined, query_norm, key_norm, cosines, sines});
    const auto found = own.attended(turned, joined, starts);
    context->save_for_backward(
        {joined, query_norm, key_norm, cosines, sines, starts, ends, turned, found.result, found.logsums});
    return found.result;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &joined = saved[0], &query_norm = saved[1], &key_norm = saved[2];
    auto& own = operators_of(context);
    const auto of_joined = at::empty_like(joined);
    const auto of_turned = own.attended_backward(gradients[0].contiguous(), saved[7], joined,
                                                 {saved[5], saved[6]}, {saved[8], saved[9]}, of_joined);
    const auto of_norms =
        own.turned_backward(of_turned, {joined, query_norm, key_norm, saved[3], saved[4]}, of_joined);
    if (!of_norms.defined()) return {of_joined, {}, {}, {}, {}, {}, {}, {}};
    return {of_joined,
            of_norms[0].to(query_norm.scalar_type()),
            of_norms[1].to(key_norm.scalar_type()),
            {},
            {},
            {},
            {},
            {}};
  }
};

struct Gate : torch::autograd::Function<Gate> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given, int64_t operators) {
    const auto joined = given.contiguous();
    context->save_for_backward({joined});
    context->saved_data["operators"] = operators;
    auto& own = operators_of(context);
    auto result = at::empty({joined.size(0), own.config().intermediate_size}, joined.options());
    own.launch(kGates, own.gate_grid(joined.size(0)), {joined, result});
    return result;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const auto saved = context->get_saved_variables();
    auto& own = operators_of(context);
    auto of_joined = at::empty_like(saved[0]);
    own.launch(kGatesBackward, own.gate_grid(of_joined.size(0)),
               {gradients[0].contiguous(), saved[0], of_joined});
    return {of_joined, {}};
  }
};

struct SumAndNorm : torch::autograd::Function<SumAndNorm> {
  static tensor_list forward(AutogradContext* context, const at::Tensor& residual, const at::Tensor& added,
                             const at::Tensor& weight, int64_t operators) {
    context->saved_data["operators"] = operators;
    context->set_materialize_grads(false);
    const auto found =
        operators_of(context).summed_and_normed(residual.contiguous(), added.contiguous(), weight);
    context->save_for_backward({found.sum, weight});
    return {found.sum, found.normed};
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const auto saved = context->get_saved_variables();
    if (!gradients[1].defined()) return {gradients[0], gradients[0], {}, {}};
    const auto passed = gradients[0].defined() ? gradients[0].contiguous() : at::Tensor();
    const auto [of_sum, of_weight] =
        operators_of(context).normed_backward(gradients[1].contiguous(), passed, saved[0], saved[1]);
    return {of_sum, of_sum, of_weight, {}};
  }
};

struct Norm : torch::autograd::Function<Norm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given, const at::Tensor& weight,
                            int64_t operators) {
    const auto x = given.contiguous();
    context->saved_data["operators"] = operators;
    context->save_for_backward({x, weight});
    return operators_of(context).summed_and_normed(x, {}, weight).normed;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto [of_x, of_weight] =
        operators_of(context).normed_backward(gradients[0].contiguous(), {}, saved[0], saved[1]);
    return {of_x, of_weight, {}};
  }
};

at::Tensor KernelOperators::attend(const at::Tensor& joined, const at::Tensor& query_norm,
                                   const at::Tensor& key_norm, const lm::Rotation& rotation,
                                   const lm::Documents& documents) {
  NEREID_CHECK(documents.starts.size(0) == joined.size(0), "{} tokens, as the documents have, got {}",
               documents.starts.size(0), joined.size(0));
  // Not looked at where the model has none; a kernel is given something all the same.
  const auto& any = rotation.cosines;
  return Attend::apply(joined, query_norm.defined() ? query_norm : any, key_norm.defined() ? key_norm : any,
                       rotation.cosines, rotation.sines, documents.starts, documents.ends,
                       reinterpret_cast<int64_t>(this));
}

at::Tensor KernelOperators::gated(const at::Tensor& joined) {
  return Gate::apply(joined, reinterpret_cast<int64_t>(this));
}

lm::Normed KernelOperators::add_and_norm(const at::Tensor& residual, const at::Tensor& added,
                                         const at::Tensor& weight) {
  if (!added.defined()) return {residual, Norm::apply(residual, weight, reinterpret_cast<int64_t>(this))};
  const auto found = SumAndNorm::apply(residual, added, weight, reinterpret_cast<int64_t>(this));
  return {found[0], found[1]};
}

}  // namespace

// Measured on an H200 for heads of 64 and 128 (bench/results/2026-11-22.md); the others fit its registers.
AttentionTiles tiles_of(const lm::Config& config) {
  if (config.dtype == lm::Dtype::kF32 || config.head_dim > 128)
    return {{32, 32, 4, 2}, {32, 32, 4, 1}, {32, 32, 8, 1}};
  if (config.head_dim > 64) return {{64, 64, 4, 3}, {64, 32, 4, 2}, {32, 64, 4, 3}};
  if (config.head_dim == 64)
    return {{64, 64, 4, 2, 0, true}, {64, 64, 4, 3, 0, true}, {64, 64, 4, 2, 168, true}};
  return {{64, 64, 4, 3}, {64, 64, 4, 3}, {32, 64, 4, 3}};
}

Result<AttentionTiles> with_tiles(AttentionTiles tiles, const std::string& words) {
  const std::map<std::string, Tiles*> parts = {
      {"forward", &tiles.forward}, {"queries", &tiles.of_queries}, {"keys", &tiles.of_keys}};
  std::istringstream in(words);
  for (std::string word; in >> word;) {
    const size_t equals = word.find('=');
    const auto part = parts.find(word.substr(0, equals));
    Tiles read{};
    int length = 0;
    const char* numbers = equals == std::string::npos ? "" : word.c_str() + equals + 1;
    const int count = std::sscanf(numbers, "%ld,%ld,%d,%d,%d%n", &read.queries, &read.keys, &read.warps,
                                  &read.stages, &read.registers, &length);
    if (part == parts.end() || count != 5 || numbers[length] != '\0' || read.warps < 1 || read.stages < 1 ||
        read.registers < 0 || read.queries < 16 || read.keys < 16 || read.queries != padded(read.queries) ||
        read.keys != padded(read.keys))
      return input_error(
          "NEREID_ATTENTION_TILES: forward, queries or keys=QUERIES,KEYS,WARPS,STAGES,REGISTERS, the first "
          "two powers of two from 16 on, got '{}'",
          word);
    // What a program keeps is one of the blocks that it goes through, or two.
    const auto [kept, block] =
        part->first == "keys" ? std::pair(read.keys, read.queries) : std::pair(read.queries, read.keys);
    read.described = part->second->described && (kept == block || kept == 2 * block);
    *part->second = read;
  }
  return tiles;
}

Result<std::shared_ptr<lm::Operators>> make_training_operators(const lm::Config& config,
                                                               lm::Launcher& launcher,
                                                               const Installation& installation) {
  const std::string element = element_name(config.dtype);
  const int64_t dim = config.head_dim, hidden = config.hidden_size, wide = padded(hidden);
  const int norm_warps = static_cast<int>(std::clamp<int64_t>(wide / 1024, 1, 8));
  const std::map<std::string, int64_t> gate = {{"WIDTH", config.intermediate_size}, {"TILE", kGateColumns}};
  const auto norm = [&](const char* name, const char* flag, bool both) {
    return KernelRequest{
        name, element, {{"WIDTH", hidden}, {"WIDTH_PADDED", wide}, {flag, both}}, norm_warps};
  };
  const auto turn = [&](const char* name) {
    return KernelRequest{name,
                         element,
                         {{"HEADS", config.heads},
                          {"KEY_HEADS", config.key_value_heads},
                          {"DIM", dim},
                          {"HALF_PADDED", padded(dim / 2)},
                          {"NORMED", config.query_key_norm()},
                          {"ROWS", kTurnedRows}}};
  };
  const auto attention = [&](const char* name, const Tiles& tiles) {
    return KernelRequest{name,
                         element,
                         {{"HEADS", config.heads},
                          {"KEY_HEADS", config.key_value_heads},
                          {"DIM", dim},
                          {"DIM_PADDED", std::max<int64_t>(padded(dim), 16)},
                          {"QUERIES", tiles.queries},
                          {"KEYS", tiles.keys},
                          {"DESCRIBED", tiles.described}},
                         tiles.warps,
                         tiles.stages,
                         tiles.registers};
  };
  const char* const words = std::getenv("NEREID_ATTENTION_TILES");
  NEREID_TRY(const AttentionTiles tiles, with_tiles(tiles_of(config), words == nullptr ? "" : words));
  // In the order of Kernel.
  const std::vector<KernelRequest> requests = {
      {"token_losses",
       element,
       {{"WIDTH", config.vocab_size}, {"TILE", std::clamp<int64_t>(padded(config.vocab_size), 8, kLossTile)}},
       kLossWarps},
      {"gate", element, gate},
      {"gate_backward", element, gate},
      norm("sum_and_norm", "ADDED", true),
      norm("sum_and_norm", "ADDED", false),
      norm("sum_and_norm_backward", "PASSED", true),
      norm("sum_and_norm_backward", "PASSED", false),
      turn("turn_heads"),
      turn("turn_heads_backward"),
      attention("packed_attention", tiles.forward),
      attention("packed_attention_queries", tiles.of_queries),
      attention(tiles.of_keys.described ? "packed_attention_keys_described" : "packed_attention_keys",
                tiles.of_keys)};
  NEREID_TRY(auto kernels, build_kernels(installation, launcher.arch(), requests));
  NEREID_TRY(const size_t first, launcher.load(std::move(kernels)));
  return std::shared_ptr<lm::Operators>(std::make_shared<KernelOperators>(config, tiles, launcher, first));
}

}  // namespace nereid::train
