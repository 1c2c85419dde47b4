#include "nereid/pairs/variants.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>

#include "nereid/pairs/normal_form.h"

namespace nereid::pairs {
namespace {

// A tile that is nothing like what the model has would teach little.
constexpr size_t kNearest = 8;
constexpr int kTries = 3;  // for each variant: a choice may make no difference, or not be lowered

using lower::KernelChoice;

double distance(const KernelChoice& a, const KernelChoice& b) {
  const auto steps = [](int64_t x, int64_t y) {
    return std::abs(std::log2(static_cast<double>(x + 1) / static_cast<double>(y + 1)));
  };
  return steps(a.rows, b.rows) + steps(a.columns, b.columns) + steps(a.m, b.m) + steps(a.n, b.n) +
         steps(a.k, b.k) + steps(a.warps, b.warps) + steps(a.stages, b.stages);
}

struct Move {
  Choice choice;
  std::function<void(lower::Choices&)> apply;
};

Result<lower::Module> lowered(const trace::Trace& trace, const std::string& source,
                              const lower::Choices& choices) {
  try {
    return lower::lower_module(trace, source, choices);
  } catch (const std::exception& e) {
    return our_error("the compiler broke down: {}", e.what());
  }
}

std::string short_name(const std::string& op) {
  const size_t colons = op.rfind(':');
  const size_t begin = colons == op.npos ? 0 : colons + 1;
  return op.substr(begin, op.find('.', begin) - begin);
}

void add_cuts(const lower::LoweredKernel& kernel, std::vector<Move>& moves) {
  std::vector<KernelChoice> near = kernel.others;
  std::stable_sort(near.begin(), near.end(), [&](const auto& a, const auto& b) {
    return distance(a, kernel.choice) < distance(b, kernel.choice);
  });
  near.resize(std::min(near.size(), kNearest));
  // Other precisions that are as exact as float32 asks.
  if (!kernel.choice.precision.empty() && kernel.choice.k > 0)
    for (const char* precision : {"tf32x3", "bf16x6", "ieee"}) {
      KernelChoice other = kernel.choice;
      other.precision = precision;
      if (kernel.choice.precision != precision && kernel.choice.precision != "tf32") near.push_back(other);
    }
  for (const KernelChoice& other : near)
    moves.push_back({{Choice::Kind::kCut, kernel.name, lower::to_string(other)},
                     [name = kernel.name, other](lower::Choices& c) { c.kernels[name] = other; }});
}

// Between two operators that one kernel does.
void add_boundaries(const trace::Trace& trace, const lower::LoweredKernel& kernel, std::vector<Move>& moves) {
  const auto& steps = trace.phases.back().steps;
  for (const int step : kernel.covers) {
    if (step == *kernel.covers.begin()) continue;
    const auto* call = std::get_if<trace::Call>(&steps[static_cast<size_t>(step)]);
    if (call == nullptr) continue;
    moves.push_back({{Choice::Kind::kFusion, "", short_name(call->op)},
                     [step](lower::Choices& c) { c.cuts.insert(step); }});
  }
}

void add_ways(std::vector<Move>& moves) {
  const auto way = [&](const char* name, bool lower::Choices::*flag) {
    moves.push_back({{Choice::Kind::kWay, "", name}, [flag](lower::Choices& c) { c.*flag = !(c.*flag); }});
  };
  way("attention as products", &lower::Choices::one_pass_attention);
  way("long sums in one stage", &lower::Choices::split_sums);
}

std::vector<Move> moves_of(const trace::Trace& trace, const lower::Module& module, bool with_ways) {
  std::vector<Move> moves;
  for (const auto& kernel : module.kernels) {
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

Result<std::vector<Variant>> variants_of(const trace::Trace& trace, const std::string& source,
                                         synth::Dice& dice, int most) {
  std::vector<Variant> made;
  const auto add = [&](lower::Module module, std::vector<Choice> choices) {
    for (Choice& choice : choices)  // as it came out
      for (const auto& kernel : module.kernels)
        if (choice.kind == Choice::Kind::kCut && kernel.name == choice.kernel)
          choice.text = lower::to_string(kernel.choice);
    Variant variant{std::move(module), std::move(choices), {}};
    variant.normal_form = normal_form(variant.module.text);
    for (const Variant& other : made)
      if (other.normal_form == variant.normal_form) return;
    made.push_back(std::move(variant));
  };
  // Whether a product of sizes can be divided is no question for who learns from this.
  const lower::Choices plain{.masked = true};
  NEREID_TRY(auto own, lowered(trace, source, plain));
  const auto moves = moves_of(trace, own, has_attention(trace));
  add(std::move(own), {});
  for (int left = kTries * most; left > 0 && static_cast<int>(made.size()) < most && !moves.empty(); --left) {
    lower::Choices choices = plain;
    const Move& move = moves[dice.below(static_cast<uint32_t>(moves.size()))];
    move.apply(choices);
    std::vector<Choice> chosen = {move.choice};
    // Another boundary makes other kernels, which may be cut otherwise too.
    auto other = lowered(trace, source, choices);
    if (other.ok() && move.choice.kind != Choice::Kind::kCut && dice.below(2) == 0) {
      std::vector<Move> cuts;
      for (const auto& kernel : other->kernels) add_cuts(kernel, cuts);
      if (!cuts.empty()) {
        const Move& cut = cuts[dice.below(static_cast<uint32_t>(cuts.size()))];
        cut.apply(choices);
        chosen.push_back(cut.choice);
        other = lowered(trace, source, choices);
      }
    }
    if (other.ok()) add(*std::move(other), std::move(chosen));
  }
  return made;
}

}  // namespace nereid::pairs
