#include "nereid/dataset/variants.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <functional>
#include <optional>

#include "nereid/trace/op_class.h"
#include "nereid/verify/analysis/normal_form.h"

namespace nereid::dataset {
namespace {

// A tile that is nothing like what the model has would teach little.
constexpr size_t kNearest = 8;
constexpr size_t kNearestMeasured = 24;  // whose time says what they are worth
constexpr const char* kAttentionAsProducts = "attention as products";
constexpr int kMaxAttempts = 3;  // for each variant: a choice may make no difference, or not be lowered

using compiler::KernelChoice;

double distance(const KernelChoice& a, const KernelChoice& b) {
  const auto steps = [](int64_t x, int64_t y) {
    return std::abs(std::log2(static_cast<double>(x + 1) / static_cast<double>(y + 1)));
  };
  return steps(a.rows, b.rows) + steps(a.columns, b.columns) + steps(a.m, b.m) + steps(a.n, b.n) +
         steps(a.k, b.k) + steps(a.warps, b.warps) + steps(a.stages, b.stages);
}

struct Move {
  Choice choice;  // without text where that is a cut's
  KernelChoice cut = {};
  std::function<void(compiler::Choices&)> apply;
};

Choice choice_of(const Move& move) {
  Choice choice = move.choice;
  if (choice.kind == Choice::Kind::kCut) choice.text = compiler::to_string(move.cut);
  return choice;
}

Result<compiler::Module> lowered(compiler::Lowering& task, const compiler::Choices& choices) {
  try {
    compiler::Choices apart = choices;
    apart.share_equal = false;  // a plan speaks of each kernel by its own name
    return task.module(apart);
  } catch (const std::exception& e) {
    return our_error("the compiler broke down: {}", e.what());
  }
}

std::string short_name(const std::string& op) {
  const size_t colons = op.rfind(':');
  const size_t begin = colons == op.npos ? 0 : colons + 1;
  return op.substr(begin, op.find('.', begin) - begin);
}

void add_cuts(const compiler::LoweredKernel& kernel, std::vector<Move>& moves, size_t nearest = kNearest) {
  std::vector<KernelChoice> near = kernel.others;
  std::stable_sort(near.begin(), near.end(), [&](const auto& a, const auto& b) {
    return distance(a, kernel.choice) < distance(b, kernel.choice);
  });
  near.resize(std::min(near.size(), nearest));
  // Other precisions that are as exact as float32 asks.
  if (!kernel.choice.precision.empty() && kernel.choice.k > 0)
    for (const char* precision : {"tf32x3", "bf16x6", "ieee"}) {
      KernelChoice other = kernel.choice;
      other.precision = precision;
      if (kernel.choice.precision != precision && kernel.choice.precision != "tf32") near.push_back(other);
    }
  for (const KernelChoice& other : near)
    moves.push_back({{Choice::Kind::kCut, kernel.name, {}},
                     other,
                     [name = kernel.name, other](compiler::Choices& c) { c.kernels[name] = other; }});
}

// Between two operators that one kernel does.
void add_boundaries(const trace::Trace& trace, const compiler::LoweredKernel& kernel,
                    std::vector<Move>& moves) {
  const auto& steps = trace.phases.back().steps;
  for (const int step : kernel.covers) {
    if (step == *kernel.covers.begin()) continue;
    const auto* call = std::get_if<trace::Call>(&steps[static_cast<size_t>(step)]);
    if (call == nullptr) continue;
    moves.push_back({{Choice::Kind::kFusion, "", short_name(call->op)}, {}, [step](compiler::Choices& c) {
                       c.cuts.insert(step);
                     }});
  }
}

// A kernel for each operator, but for what goes element by element (copies too) over the same places as the
// step before, and for numbers.
compiler::Choices one_by_one(const trace::Trace& trace) {
  compiler::Choices choices{.split_sums = false, .masked = true};
  const auto& steps = trace.phases.back().steps;
  const auto sizes_of = [&](trace::ValueId id) { return trace.values[static_cast<size_t>(id)].sizes; };
  std::set<trace::ValueId> before;  // what the kernel made so far
  std::vector<int64_t> over;        // and over what sizes
  for (size_t s = 0; s < steps.size(); ++s) {
    const auto* call = std::get_if<trace::Call>(&steps[s]);
    if (call == nullptr) continue;
    const auto results = trace::tensors_in(call->result);
    std::vector<trace::ValueId> operands;
    for (const auto& arg : call->args)
      std::ranges::copy(trace::tensors_in(arg), std::back_inserter(operands));
    const auto kind = trace::listed_class(call->op);
    if (kind == trace::OpClass::kAllocation || kind == trace::OpClass::kFill) continue;
    const auto follows = [&] {
      const bool copies = call->op == "aten::clone";
      if ((kind != trace::OpClass::kPointwise && !copies) || results.size() != 1) return false;
      bool reads = false;
      for (const auto id : operands) {
        reads = reads || before.contains(id);
        if (sizes_of(id) != sizes_of(results[0]) && !sizes_of(id).empty()) return false;
      }
      return reads && sizes_of(results[0]) == over;
    };
    if (!follows()) {
      if (s > 0) choices.cuts.insert(static_cast<int>(s));
      before.clear();
    }
    for (const auto id : results) before.insert(id);
    if (!results.empty()) over = sizes_of(results[0]);
  }
  return choices;
}

void add_way(std::vector<Move>& moves, const char* name, bool compiler::Choices::* flag) {
  moves.push_back(
      {{Choice::Kind::kWay, "", name}, {}, [flag](compiler::Choices& c) { c.*flag = !(c.*flag); }});
}

void add_ways(std::vector<Move>& moves) {
  add_way(moves, kAttentionAsProducts, &compiler::Choices::one_pass_attention);
  add_way(moves, "long sums in one stage", &compiler::Choices::split_sums);
}

// Those that training pairs without a clock do not have, too.
std::vector<Move> all_ways() {
  std::vector<Move> moves;
  add_ways(moves);
  add_way(moves, "convolutions in the layout of their inputs", &compiler::Choices::channels_last);
  add_way(moves, "products of float32 without parts", &compiler::Choices::split_products);
  add_way(moves, "sums and products in the order of the text", &compiler::Choices::algebra);
  return moves;
}

std::vector<Move> moves_of(const trace::Trace& trace, const std::vector<compiler::LoweredKernel>& kernels,
                           bool with_ways) {
  std::vector<Move> moves;
  for (const auto& kernel : kernels) {
    add_cuts(kernel, moves);
    add_boundaries(trace, kernel, moves);
  }
  if (with_ways) add_ways(moves);
  return moves;
}

bool has_attention(const trace::Trace& trace) {
  return std::ranges::any_of(trace.phases.back().steps, [](const trace::Step& step) {
    const auto* call = std::get_if<trace::Call>(&step);
    return call != nullptr && call->op.find("attention") != std::string::npos;
  });
}

}  // namespace

std::string to_string(const Choice& choice) {
  switch (choice.kind) {
    case Choice::Kind::kCut:
      return choice.kernel + ": " + choice.text;
    case Choice::Kind::kFusion:
      return "not fused across the step before " + choice.text;
    case Choice::Kind::kWay:
      return choice.text;
  }
  return choice.text;
}

namespace {

// Whether a product of sizes can be divided is no question for who learns from this.
const compiler::Choices kMasked{.masked = true};

compiler::Choices fused(compiler::Fusion fusion) {
  return {.split_sums = false, .masked = true, .fusion = fusion};
}

constexpr std::array kKinds = {Kind::kOneByOne, Kind::kSimplyFused,
                               Kind::kFused};  // that a small model learns
constexpr size_t kAllKinds = kKinds.size() + 1;

// The same operators in the same kernels, whatever their blocks.
bool same_kernels(const std::vector<compiler::LoweredKernel>& a,
                  const std::vector<compiler::LoweredKernel>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.name == y.name && x.covers == y.covers && x.rows == y.rows && x.columns == y.columns;
  });
}

class VariantMaker {
 public:
  // `prose`: as Lowering has it.
  VariantMaker(const trace::Trace& trace, const std::string& source, synth::Rng& rng, bool prose,
               std::string target = "sm_90")
      : trace_(trace),
        task_(trace, source, prose),
        rng_(rng),
        target_(std::move(target)),
        ways_(has_attention(trace)) {}

  // As the compiler has it.
  Status add_own(Kind kind) {
    const Kind easiest = this->easiest(kind);
    if (added_[static_cast<size_t>(easiest)]) return ok_status();
    added_[static_cast<size_t>(easiest)] = true;
    NEREID_TRY(compiler::Module own, this->own(easiest));
    add(std::move(own), {}, easiest);
    return ok_status();
  }

  // With one thing chosen otherwise, or two. What cannot be lowered so is left out.
  void add_other() {
    const auto* own = own_kernels(Kind::kCompiled);
    if (own == nullptr) return;
    const auto moves = moves_of(trace_, *own, ways_);
    if (moves.empty()) return;
    compiler::Choices choices = base(Kind::kCompiled);
    std::vector<Choice> chosen;
    make(moves, choices, chosen);
    // Another boundary makes other kernels, which may be cut otherwise too.
    auto other = lowered(task_, choices);
    if (other.ok() && chosen.front().kind != Choice::Kind::kCut && rng_.below(2) == 0) {
      std::vector<Move> cuts;
      for (const auto& kernel : other->kernels) add_cuts(kernel, cuts);
      if (!cuts.empty()) {
        make(cuts, choices, chosen);
        other = lowered(task_, choices);
      }
    }
    if (other.ok()) add(*std::move(other), std::move(chosen), Kind::kCompiled);
  }

  // With each kernel cut otherwise or not, as likely.
  void add_recut(Kind kind) {
    const Kind easiest = this->easiest(kind);
    const auto* own = own_kernels(easiest);
    if (own == nullptr) return;
    compiler::Choices choices = base(easiest);
    std::vector<Choice> chosen;
    for (const auto& kernel : *own) {
      if (rng_.below(2) == 0) continue;
      std::vector<Move> cuts;
      add_cuts(kernel, cuts);
      if (!cuts.empty()) make(cuts, choices, chosen);
    }
    if (chosen.empty()) return;
    auto other = lowered(task_, choices);
    if (other.ok()) add(*std::move(other), std::move(chosen), easiest);
  }

  // One of all_ways() instead.
  void add_other_way(const Move& way) {
    compiler::Choices choices = base(Kind::kCompiled);
    way.apply(choices);
    if (auto other = lowered(task_, choices); other.ok())
      add(*std::move(other), {choice_of(way)}, Kind::kCompiled);
  }

  // Anything else that may take another time.
  void add_drawn(const std::vector<Move>& ways) {
    const Kind kind = rng_.below(2) == 0 ? Kind::kCompiled : easiest(kKinds[rng_.below(kKinds.size())]);
    const auto* own = own_kernels(kind);
    if (own == nullptr) return;
    compiler::Choices choices = base(kind);
    std::vector<Choice> chosen;
    if (kind == Kind::kCompiled && rng_.below(4) == 0) make(ways, choices, chosen);
    std::vector<Move> boundaries;
    for (const auto& kernel : *own) add_boundaries(trace_, kernel, boundaries);
    if (!boundaries.empty() && rng_.below(3) == 0) make(boundaries, choices, chosen);
    auto other = lowered(task_, choices);
    if (!other.ok()) return;
    std::vector<Move> last;
    for (const auto& kernel : other->kernels) {
      std::vector<Move> cuts;
      add_cuts(kernel, cuts, kNearestMeasured);
      if (cuts.empty()) continue;
      if (rng_.below(2) == 0) make(cuts, choices, chosen);
      last = std::move(cuts);
    }
    if (chosen.empty() && !last.empty()) make(last, choices, chosen);
    if (chosen.empty()) return;
    other = lowered(task_, choices);
    if (other.ok()) add(*std::move(other), std::move(chosen), kind);
  }

  // With attention as products.
  void add_way() {
    if (!ways_) return;
    compiler::Choices choices = base(Kind::kFused);
    choices.one_pass_attention = false;
    if (auto other = lowered(task_, choices); other.ok())
      add(*std::move(other), {{Choice::Kind::kWay, "", kAttentionAsProducts}}, Kind::kFused);
  }

  int count() const { return static_cast<int>(made_.size()); }
  std::vector<Variant> take() { return std::move(made_); }

 private:
  const compiler::Choices& base(Kind kind) {
    auto& choices = bases_[static_cast<size_t>(kind)];
    if (!choices) {
      choices = kind == Kind::kOneByOne      ? one_by_one(trace_)
                : kind == Kind::kSimplyFused ? fused(compiler::Fusion::kPlain)
                : kind == Kind::kFused       ? fused(compiler::Fusion::kIndexed)
                                             : kMasked;
      choices->target = target_;
    }
    return *choices;
  }

  // Of the kinds with the same kernels.
  Kind easiest(Kind kind) {
    const auto* own = own_kernels(kind);
    for (const Kind easier : kKinds) {
      if (easier >= kind || own == nullptr) break;
      if (const auto* kernels = own_kernels(easier); kernels != nullptr && same_kernels(*kernels, *own))
        return easier;
    }
    return kind;
  }

  // The compiler's own kernels; null where it cannot be lowered.
  const std::vector<compiler::LoweredKernel>* own_kernels(Kind kind) {
    const auto& own = this->own(kind);
    return own.ok() ? &own->kernels : nullptr;
  }

  const Result<compiler::Module>& own(Kind kind) {
    auto& own = own_[static_cast<size_t>(kind)];
    if (!own) own = std::make_unique<Result<compiler::Module>>(lowered(task_, base(kind)));
    return *own;
  }

  // One of the moves.
  void make(const std::vector<Move>& moves, compiler::Choices& choices, std::vector<Choice>& chosen) {
    const Move& move = moves[rng_.below(static_cast<uint32_t>(moves.size()))];
    move.apply(choices);
    chosen.push_back(choice_of(move));
  }

  void add(compiler::Module module, std::vector<Choice> choices, Kind kind) {
    for (Choice& choice : choices)  // as it came out
      for (const auto& kernel : module.kernels)
        if (choice.kind == Choice::Kind::kCut && kernel.name == choice.kernel)
          choice.text = compiler::to_string(kernel.choice);
    Variant variant{std::move(module), std::move(choices), {}, kind};
    variant.normal_form = verify::normal_form(variant.module.text);
    for (const Variant& other : made_)
      if (other.normal_form == variant.normal_form) return;
    made_.push_back(std::move(variant));
  }

  const trace::Trace& trace_;
  compiler::Lowering task_;
  synth::Rng& rng_;
  const std::string target_;
  bool ways_;
  // Of each kind:
  std::array<std::optional<compiler::Choices>, kAllKinds> bases_{};
  std::array<std::unique_ptr<const Result<compiler::Module>>, kAllKinds> own_{};  // once it was asked for
  std::array<bool, kAllKinds> added_{};
  std::vector<Variant> made_{};
};

}  // namespace

Result<std::vector<Variant>> variants_of(const trace::Trace& trace, const std::string& source,
                                         synth::Rng& rng, int most) {
  VariantMaker maker(trace, source, rng, true);
  NEREID_TRY_STATUS(maker.add_own(Kind::kCompiled));
  for (int left = kMaxAttempts * most; left > 0 && maker.count() < most; --left) maker.add_other();
  return maker.take();
}

Result<std::vector<Variant>> variants_of_kinds(const trace::Trace& trace, const std::string& source,
                                               synth::Rng& rng, int most) {
  VariantMaker maker(trace, source, rng, false);  // prose is not worth an answer's tokens
  std::array order = kKinds;
  // Two of five as they stand.
  if (const uint32_t way = rng.below(5); way == 2 || way == 3)
    order = {Kind::kOneByOne, Kind::kFused, Kind::kSimplyFused};
  else if (way == 4)
    order = {Kind::kSimplyFused, Kind::kFused, Kind::kOneByOne};
  NEREID_TRY_STATUS(maker.add_own(order[0]));
  for (size_t k = 1; k < order.size() && maker.count() < most; ++k) {
    // One in three with other cuts, or another way.
    if (rng.below(3) != 0)
      NEREID_TRY_STATUS(maker.add_own(order[k]));
    else if (order[k] == Kind::kFused && rng.below(3) == 0)
      maker.add_way();
    else
      maker.add_recut(order[k]);
  }
  for (int left = kMaxAttempts * most; left > 0 && maker.count() < most; --left)
    maker.add_recut(order[rng.below(kKinds.size())]);
  return maker.take();
}

Result<std::vector<Variant>> variants_to_measure(const trace::Trace& trace, const std::string& source,
                                                 synth::Rng& rng, int most, const std::string& target) {
  VariantMaker maker(trace, source, rng, true, target);
  NEREID_TRY_STATUS(maker.add_own(Kind::kCompiled));
  for (const Kind kind : kKinds)  // one that cannot be lowered is left out
    if (maker.count() < most) (void)maker.add_own(kind);
  const auto ways = all_ways();
  for (const Move& way : ways)
    if (maker.count() < most) maker.add_other_way(way);
  for (int left = kMaxAttempts * most; left > 0 && maker.count() < most; --left) maker.add_drawn(ways);
  return maker.take();
}

}  // namespace nereid::dataset
