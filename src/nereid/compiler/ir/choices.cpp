#include "nereid/compiler/ir/choices.h"

#include <fmt/ranges.h>

#include <array>
#include <utility>

namespace nereid::compiler {

namespace {

struct TargetCost {
  std::string_view target;
  CostConstants constants;
};
constexpr TargetCost kCostConstants[] = {
#include "nereid/compiler/ir/cost_constants.inc"
};

std::vector<Target> with_cost(std::vector<Target> table) {
  for (Target& target : table)
    for (const TargetCost& of : kCostConstants)
      if (of.target == target.name) target.cost = of.constants;
  return table;
}

}  // namespace

const std::vector<Target>& targets() {
  static const std::vector<Target> table = with_cost({
      {"sm_80", "A100", 108, 163 << 10, 2.0e12, 19.5e12, 156e12, 312e12},
      {"sm_90", "H200", 132, 227 << 10, 4.8e12, 67e12, 494e12, 989e12},
      {"sm_100", "B200", 148, 227 << 10, 8.0e12, 80e12, 1125e12, 2250e12},
  });
  return table;
}

Result<Target> target_named(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Target& each : targets()) {
    if (each.name == name) return each;
    known.push_back(each.name);
  }
  return input_error("{} is not a target: expected one of {}", name, fmt::join(known, ", "));
}

std::string target_of_device(std::string_view device) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kFamilies = {
      {{"A100", "sm_80"}, {"A800", "sm_80"}, {"B200", "sm_100"}, {"B100", "sm_100"}}};
  for (const auto& [part, name] : kFamilies)
    if (device.find(part) != device.npos) return std::string(name);
  return "sm_90";
}

std::string to_string(const KernelChoice& choice) {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, int64_t value) {
    if (value != 0) parts.push_back(fmt::format("{}={}", name, value));
  };
  add("rows", choice.rows);
  add("columns", choice.columns);
  add("m", choice.m);
  add("n", choice.n);
  add("k", choice.k);
  add("warps", choice.warps);
  add("stages", choice.stages);
  if (!choice.precision.empty()) parts.push_back("precision=" + choice.precision);
  if (choice.persistent) parts.emplace_back("persistent");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace nereid::compiler
