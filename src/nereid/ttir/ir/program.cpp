#include "nereid/ttir/ir/program.h"

#include <unordered_map>

namespace nereid::ttir {
namespace {

struct OpInfo {
  std::string_view name;
  uint8_t traits;
};
constexpr OpInfo kOps[] = {
#define TTIR_OP(kind, name, traits) {name, traits},
#include "nereid/ttir/ir/ops.def"
};

}  // namespace

std::string_view to_string(OpKind kind) { return kOps[static_cast<size_t>(kind)].name; }
uint8_t traits(OpKind kind) { return kOps[static_cast<size_t>(kind)].traits; }

OpKind op_named(std::string_view name) {
  static const auto* const by_name = [] {
    auto* map = new std::unordered_map<std::string_view, OpKind>;
    for (size_t i = 0; i < std::size(kOps); ++i) map->emplace(kOps[i].name, static_cast<OpKind>(i));
    return map;
  }();
  const auto found = by_name->find(name);
  return found == by_name->end() ? OpKind::kCount : found->second;
}

int64_t Op::integer(std::string_view name, int64_t otherwise) const {
  const auto found = attributes.find(name);
  return found == attributes.end() || found->second.kind != Attribute::Kind::kInteger ? otherwise
                                                                                      : found->second.integer;
}

const std::string& Op::text(std::string_view name) const {
  static const std::string empty;
  const auto found = attributes.find(name);
  return found == attributes.end() ? empty : found->second.text;
}

const std::vector<int64_t>& Op::integers(std::string_view name) const {
  static const std::vector<int64_t> empty;
  const auto found = attributes.find(name);
  return found == attributes.end() ? empty : found->second.integers;
}

const Function* Module::find(std::string_view name) const {
  for (const auto& function : functions)
    if (function.name == name) return &function;
  return nullptr;
}

}  // namespace nereid::ttir
