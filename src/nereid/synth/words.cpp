#include "nereid/synth/words.h"

#include <algorithm>

namespace nereid::synth {
namespace {

using ops::Lowering;
using ops::Range;
using ops::Rule;

constexpr std::string_view kSizes0[] = {"batch_size",   "seq_len", "hidden_size", "embed_dim",
                                        "num_features", "width",   "depth",       "inner_dim"};
constexpr std::string_view kSizes1[] = {"N", "M", "K", "D", "C", "H", "W", "P", "Q", "S"};
constexpr std::string_view kSizes2[] = {"batch",    "channels", "height",    "width",
                                        "features", "length",   "groups_dim"};
constexpr std::string_view kSizes3[] = {"B", "T", "dim", "inner", "rows", "cols", "units", "span"};
constexpr std::span<const std::string_view> kSizes[] = {kSizes0, kSizes1, kSizes2, kSizes3};

// Nouns for results, by lowering class: plain ones, and what a more talkative author writes.
constexpr std::string_view kNouns[][2] = {
    {"out", "activated"},  // pointwise
    {"r", "reduced"},      // reduction
    {"acc", "running"},    // scan
    {"out", "projected"},  // contraction
    {"feat", "features"},  // convolution
    {"pooled", "pooled"},  // pooling
    {"n", "normed"},       // normalisation
    {"attn", "attended"},  // attention
    {"v", "rearranged"},   // layout
    {"sel", "selected"},   // gather
    {"loss", "loss"},      // loss
    {"h", "hidden"},       // recurrent
};

constexpr std::string_view kLayers[] = {"act",  "reduce", "scan", "proj",  "conv", "pool",
                                        "norm", "attn",   "view", "embed", "loss", "cell"};

}  // namespace

std::span<const std::string_view> size_names(int list) { return kSizes[list]; }

std::string_view input_name(const ops::Operator& op, const Input& input, const ops::Shape& result,
                            size_t slot, int list) {
  if (input.range == Range::kMask) return "mask";
  if (input.range == Range::kIndex) {
    if (op.rule == Rule::kClassLoss) return list == 0 ? "labels" : "target";
    return list == 0 ? "indices" : "idx";
  }
  if (op.rule == Rule::kAttention) return slot == 0 ? "query" : slot == 1 ? "key" : "value";
  if (op.rule == Rule::kTripletLoss) return slot == 0 ? "anchor" : slot == 1 ? "positive" : "negative";
  if (op.rule == Rule::kCell && slot == 1) return list == 0 ? "hidden" : "state";
  if (op.lowering == Lowering::kLoss && slot == 1) return list == 0 ? "target" : "y";
  if (input.range == Range::kWeight) return list == 0 ? "weight" : list == 1 ? "w" : "b";
  if (slot > 0 && input.shape.rank < result.rank && op.rule == Rule::kBinary)
    return op.name == "add" || op.name == "sub" ? "bias" : "scale";
  if (slot == 0) return list == 2 ? "inputs" : "x";
  return list == 0 ? "other" : list == 1 ? "y" : "b";
}

std::string_view layer_name(const ops::Operator& op) {
  if (op.name == "linear") return "fc";
  if (op.name.find("softmax") != op.name.npos) return "softmax";
  return kLayers[static_cast<size_t>(op.lowering)];
}

std::string_view value_name(const ops::Operator& op, int list) {
  if (op.indices) return "best";
  if (op.rule == Rule::kBinary) return list == 0 ? "out" : "combined";
  if (op.rule == Rule::kMatmul || op.rule == Rule::kBmm) return list == 0 ? "prod" : "scores";
  if (op.name == "softmax") return list == 0 ? "p" : "probs";
  return kNouns[static_cast<size_t>(op.lowering)][list];
}

std::string_view phrase(const ops::Operator& op) {
  switch (op.lowering) {
    case Lowering::kContraction:
      return op.name == "linear" ? "linear layer" : "matrix product";
    case Lowering::kConvolution:
      return op.name.find("transpose") != op.name.npos ? "transposed convolution" : "convolution";
    case Lowering::kAttention:
      return "attention";
    case Lowering::kPooling:
      return op.name.find("max") != op.name.npos ? "max pooling" : "average pooling";
    case Lowering::kRecurrent:
      return "recurrent cell";
    default:
      break;
  }
  if (op.name == "add_scalar") return "addition of a number";
  if (op.name == "sub_scalar" || op.name == "rsub") return "difference to a number";
  if (op.name == "mul_scalar") return "scaling";
  if (op.name == "div_scalar") return "division by a number";
  if (op.name == "neg") return "negation";
  return op.name;
}

void describe(const Program& program, std::string& to) {
  const size_t count = program.steps.size();
  const size_t shown = count <= 8 ? count : 6;
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) to += i + 1 == count ? " and " : i == 1 && count > 2 ? ", then " : ", ";
    const std::string_view text = phrase(*program.steps[i].applied.op);
    for (const char c : text) to += c == '_' ? ' ' : c;
    if (i == 0) to[to.size() - text.size()] = static_cast<char>(std::toupper(to[to.size() - text.size()]));
  }
  if (shown < count) to += " and " + std::to_string(count - shown) + " more steps";
}

bool NameTable::taken(std::string_view name) const {
  return std::find(taken_.begin(), taken_.end(), name) != taken_.end();
}

std::string NameTable::fresh(std::string_view wanted) {
  std::string name(wanted);
  for (int number = 2; taken(name); ++number) name = std::string(wanted) + std::to_string(number);
  taken_.push_back(name);
  return name;
}

void NameTable::release(std::string_view name) {
  const auto place = std::find(taken_.begin(), taken_.end(), name);
  if (place != taken_.end()) taken_.erase(place);
}

}  // namespace nereid::synth
