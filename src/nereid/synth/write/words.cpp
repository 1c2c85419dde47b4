#include "nereid/synth/write/words.h"

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

constexpr std::string_view kWords[] = {
    "alpha",       "gamma",       "delta",      "theta",       "sigma",       "rho",       "tau",
    "phi",         "psi",         "omega",      "kappa",       "zeta",        "anchor",    "angle",
    "area",        "atlas",       "audio",      "axis",        "band",        "basis",     "batch",
    "beam",        "bin",         "blend",      "block",       "body",        "bolt",      "bound",
    "branch",      "bridge",      "bucket",     "bulk",        "cache",       "canvas",    "cell",
    "center",      "chain",       "chart",      "chunk",       "clip",        "cluster",   "code",
    "coarse",      "col",         "column",     "conv",        "coord",       "core",      "corner",
    "cost",        "count",       "coupling",   "cover",       "crop",        "cross",     "cube",
    "curve",       "cut",         "cycle",      "data",        "decay",       "deep",      "delay",
    "dense",       "depth",       "detail",     "diff",        "digit",       "draft",     "drift",
    "edge",        "effect",      "embed",      "encoder",     "end",         "energy",    "entry",
    "epoch",       "error",       "even",       "event",       "extra",       "factor",    "family",
    "fast",        "feature",     "field",      "filter",      "final",       "fine",      "first",
    "flat",        "flow",        "focus",      "fold",        "frame",       "front",     "fuel",
    "fusion",      "gain",        "gap",        "gate",        "glyph",       "graph",     "grid",
    "ground",      "group",       "guide",      "head",        "heat",        "height",    "hidden",
    "high",        "hop",         "horizon",    "hub",         "image",       "index",     "inner",
    "item",        "joint",       "kernel",     "keep",        "key",         "knot",      "label",
    "lane",        "large",       "last",       "latent",      "layer",       "leaf",      "left",
    "lens",        "level",       "light",      "limb",        "line",        "link",      "lobe",
    "local",       "logit",       "loop",       "low",         "main",        "margin",    "mark",
    "mask",        "matrix",      "mean",       "member",      "memory",      "merge",     "mesh",
    "mid",         "mixer",       "moment",     "motion",      "nerve",       "net",       "next",
    "node",        "noise",       "norm",       "note",        "number",      "object",    "odd",
    "offset",      "order",       "origin",     "outer",       "output",      "pack",      "page",
    "pair",        "panel",       "part",       "patch",       "path",        "peak",      "phase",
    "pixel",       "place",       "plane",      "plate",       "point",       "pool",      "port",
    "pos",         "power",       "prev",       "prior",       "probe",       "profile",   "proj",
    "pulse",       "query",       "queue",      "rank",        "rate",        "ratio",     "raw",
    "ray",         "reach",       "real",       "region",      "rel",         "res",       "rest",
    "result",      "right",       "ring",       "root",        "rotor",       "round",     "route",
    "row",         "rule",        "run",        "sample",      "scale",       "scan",      "scene",
    "score",       "seed",        "seq",        "series",      "shade",       "shape",     "share",
    "sheet",       "shift",       "side",       "signal",      "site",        "skip",      "slice",
    "slot",        "smooth",      "soft",       "source",      "space",       "span",      "spark",
    "spec",        "speed",       "spin",       "spot",        "stage",       "stack",     "start",
    "stat",        "stem",        "step",       "stream",      "strip",       "surface",   "table",
    "tail",        "target",      "task",       "temp",        "term",        "text",      "thread",
    "tile",        "time",        "token",      "tone",        "top",         "total",     "tower",
    "trace",       "track",       "trail",      "tree",        "trend",       "trunk",     "tube",
    "tune",        "turn",        "unit",       "upper",       "user",        "vec",       "vector",
    "vertex",      "video",       "view",       "vocab",       "voice",       "volume",    "warp",
    "wave",        "weight",      "wheel",      "width",       "window",      "wing",      "word",
    "work",        "zone",        "prediction", "residual",    "attention",   "embedding", "position",
    "sequence",    "dimension",   "projection", "activation",  "momentum",    "gradient",  "regression",
    "classifier",  "decoder",     "generator",  "critic",      "teacher",     "student",   "policy",
    "reward",      "action",      "state",      "observation", "channel",     "spatial",   "temporal",
    "frequency",   "amplitude",   "velocity",   "density",     "pressure",    "distance",  "similarity",
    "temperature", "threshold",   "tolerance",  "precision",   "variance",    "deviation", "intercept",
    "slope",       "coefficient", "exponent",   "numerator",   "denominator", "quantity",  "measure",
    "operand",     "argument",    "parameter",  "constant",    "variable",    "segment",   "document",
    "sentence",    "paragraph",   "character",  "speaker",     "listener",    "customer",  "product",
    "category",    "hierarchy",   "neighbor",   "adjacency",   "diagonal",    "triangle",  "expert",
    "router",      "capacity",    "dispatch",   "gathered",    "scattered",   "sorted",    "shuffled",
    "padded",      "packed",      "quantized",  "compressed",  "normalized",  "centered",  "weighted",
    "smoothed",    "filtered",    "sampled",    "bias",        "logits",      "scores",    "inputs",
    "targets",     "lengths",     "offsets",    "indices",     "frames",      "heads",     "tokens",
    "rows",        "columns",     "experts",    "groups",      "bags"};

// Beginnings, middles and ends of words that no list holds.
constexpr std::string_view kOnsets[] = {
    "b",  "br", "c", "cr", "d",  "dr", "f",  "fl", "g",   "gr", "h",  "j",  "k", "l", "m", "n", "p", "pl",
    "pr", "qu", "r", "s",  "sh", "sk", "sp", "st", "str", "t",  "th", "tr", "v", "w", "x", "y", "z", ""};
constexpr std::string_view kVowels[] = {"a", "e", "i", "o", "u", "ai", "ea", "ee", "io", "oo", "ou"};
constexpr std::string_view kCodas[] = {"",   "",   "",   "b", "ck", "d",  "ft", "l", "ll", "m",  "mp", "n",
                                       "nd", "ng", "nt", "p", "r",  "rk", "rt", "s", "ss", "st", "t",  "x"};

// That a word might become.
constexpr std::string_view kNot[] = {
    "and",    "as",    "assert", "async",  "await",    "break",  "class", "continue", "def",
    "del",    "elif",  "else",   "except", "finally",  "for",    "from",  "global",   "if",
    "import", "in",    "is",     "lambda", "nonlocal", "not",    "or",    "pass",     "raise",
    "return", "try",   "while",  "with",   "yield",    "self",   "torch", "nn",       "super",
    "range",  "float", "int",    "str",    "list",     "dict",   "train", "eval",     "half",
    "double", "type",  "to",     "apply",  "print",    "triton", "math"};

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

std::string_view constant_name(const ops::Operator& op, char which) {
  if (which == 'b') return op.name == "hardtanh" || op.name == "clamp" ? "max_val" : "beta";
  if (op.name == "leaky_relu") return "negative_slope";
  if (op.name == "elu") return "alpha";
  if (op.name == "softplus" || op.name == "smooth_l1_beta") return "beta";
  if (op.name.find("norm") != op.name.npos) return "eps";
  if (op.name.find("attention") != op.name.npos) return "scale";
  if (op.name.starts_with("huber")) return "delta";
  if (op.name == "clamp_max") return "max_val";
  if (op.name == "pow_positive") return "exponent";
  if (op.name == "pow") return "exponent";
  if (op.name == "lerp") return "weight_of_second";
  if (op.name.find("fill") != op.name.npos) return "fill";
  if (op.name == "keep_above") return "threshold";
  if (op.name == "hardtanh" || op.name == "clamp" || op.name == "clamp_min") return "min_val";
  if (op.name == "mul_scalar") return "scale_factor";
  if (op.name == "div_scalar") return "divisor";
  return "offset";
}

NameInventor::NameInventor(uint32_t number)
    : rng_(number, 0), size_style_(rng_.below(10)), value_style_(rng_.below(6)) {}

std::string invented_word(Rng& rng) {
  const auto one_of = [&](auto& list) { return list[rng.below(static_cast<uint32_t>(std::size(list)))]; };
  if (rng.below(5) != 0) return std::string(one_of(kWords));
  static constexpr uint8_t kSyllables[] = {1, 1, 1, 2, 2, 3};
  std::string word;
  for (uint32_t syllables = one_of(kSyllables); syllables > 0; --syllables) {
    word += one_of(kOnsets);
    word += one_of(kVowels);
    word += one_of(kCodas);
  }
  return std::ranges::find(kNot, word) == std::end(kNot) ? word : word + "o";
}

std::string NameInventor::word() { return invented_word(rng_); }

std::string NameInventor::size() {
  const auto upper = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::toupper(c));
    return text;
  };
  static constexpr std::string_view kBefore[] = {"num", "n", "in", "out", "max", "total", "d"};
  static constexpr std::string_view kBehind[] = {"dim", "size", "len", "count", "features", "channels"};
  const auto before = [&] { return std::string(kBefore[rng_.below(std::size(kBefore))]); };
  const auto behind = [&] { return std::string(kBehind[rng_.below(std::size(kBehind))]); };
  switch (size_style_) {
    case 0:
      return upper(word());
    case 1:
      return upper(word()) + '_' + upper(behind());
    case 2:
      return upper(before()) + '_' + upper(word());
    case 3:
      return word() + '_' + behind();
    case 4:
      return before() + '_' + word();
    case 5:
      return std::string(1, static_cast<char>('A' + rng_.below(26))) + word().substr(0, 1 + rng_.below(2));
    case 6:
      return upper(word().substr(0, 2 + rng_.below(2))) + std::to_string(rng_.below(10));
    case 7:
      return word() + 's';
    case 8:
      return std::string(1, static_cast<char>('a' + rng_.below(26)));
    default:
      return std::string(1, "ABCDEGHIJKLMNOPQRSTUVWXYZ"[rng_.below(25)]);  // F is torch.nn.functional
  }
}

std::string NameInventor::value() {
  switch (value_style_) {
    case 0:
    case 1:
      return word();
    case 2:
      return word() + '_' + word();
    case 3:
      return word().substr(0, 1 + rng_.below(4)) + std::to_string(rng_.below(10));
    case 4:
      return std::string(1, static_cast<char>('a' + rng_.below(26))) + '_' + word();
    default:
      return word() + '_' + std::string(1, static_cast<char>('a' + rng_.below(26)));
  }
}

std::string NameInventor::function() {
  static constexpr std::string_view kVerbs[] = {"apply", "compute", "mix",     "fuse",
                                                "run",   "make",    "forward", "do"};
  return std::string(kVerbs[rng_.below(std::size(kVerbs))]) + '_' + word();
}

std::string NameInventor::class_name() {
  std::string name;
  for (int i = 0; i < 2; ++i) {
    std::string part = word();
    part[0] = static_cast<char>(std::toupper(part[0]));
    name += part;
  }
  return name;
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
