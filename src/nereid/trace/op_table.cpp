#include "nereid/trace/op_table.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace nereid::trace {
namespace {

struct OpRow {
  std::string_view name;
  Listed listed;
};
struct WriteRow {
  std::string_view op, arguments;
};

#include "nereid/trace/op_table.inc"

template <typename Row, size_t N, typename Key>
const Row* find_row(const Row (&rows)[N], std::string_view name, Key key) {
  const Row* row = std::lower_bound(
      std::begin(rows), std::end(rows), name,
      [&](const Row& candidate, std::string_view wanted) { return key(candidate) < wanted; });
  return row != std::end(rows) && key(*row) == name ? row : nullptr;
}

}  // namespace

OpName split_name(std::string_view op) {
  OpName parts;
  if (const size_t colons = op.find("::"); colons != op.npos) {
    parts.space = op.substr(0, colons);
    op.remove_prefix(colons + 2);
  }
  const size_t dot = op.find('.');
  parts.name = op.substr(0, dot);
  if (dot != op.npos) parts.overload = op.substr(dot + 1);
  if (parts.name.size() > 1 && parts.name.ends_with('_') && !parts.name.ends_with("__")) {
    parts.in_place = true;
    parts.name.remove_suffix(1);
  }
  return parts;
}

std::optional<Listed> listed(std::string_view op) {
  const OpName parts = split_name(op);
  if (parts.space == "nereid") return parts.name == "constant" ? Listed::kFill : Listed::kQuery;
  if (parts.space != "aten") return std::nullopt;
  const auto key = [](const OpRow& row) { return row.name; };
  if (!parts.overload.empty())
    if (const OpRow* row = find_row(kOps, std::string(parts.name) + "." + std::string(parts.overload), key))
      return row->listed;
  const OpRow* row = find_row(kOps, parts.name, key);
  if (row == nullptr) return std::nullopt;
  return row->listed;
}

std::string_view listed_writes(std::string_view op) {
  const WriteRow* row = find_row(kWrites, op, [](const WriteRow& candidate) { return candidate.op; });
  return row != nullptr ? row->arguments : std::string_view();
}

bool is_out_name(std::string_view keyword) {
  return std::binary_search(std::begin(kOutNames), std::end(kOutNames), keyword);
}

bool is_seeded(std::string_view op) {
  const OpName parts = split_name(op);
  return parts.space == "aten" && std::binary_search(std::begin(kSeeded), std::end(kSeeded), parts.name);
}

}  // namespace nereid::trace
