// Where an operation comes from: nested and named locations, resolved to a file and a line.
#include <fmt/format.h>

#include <algorithm>

#include "nereid/ttir/parse/parser_impl.h"

namespace nereid::ttir {
namespace {

constexpr int kMaxLocationDepth = 200;

}  // namespace

bool Parser::parse_location(LocationId& id) {
  id = -1;
  if (!scan_.accept("loc")) return !scan_.failed();
  if (!scan_.expect("(")) return false;
  const int node = parse_location_body(0);
  if (node < 0) return false;
  id = static_cast<LocationId>(op_nodes_.size());
  op_nodes_.push_back(node);
  return scan_.expect(")");
}

int Parser::parse_location_body(int depth) {
  if (depth > kMaxLocationDepth) {
    scan_.fail("locations nested too deeply");
    return -1;
  }
  LocationNode node;
  if (scan_.accept("unknown")) {
    node.kind = LocationNode::Kind::kUnknown;
  } else if (scan_.accept("loc")) {
    if (!scan_.expect("(")) return -1;
    const int inner = parse_location_body(depth + 1);
    return inner >= 0 && scan_.expect(")") ? inner : -1;
  } else if (scan_.accept("callsite")) {
    node.kind = LocationNode::Kind::kCallSite;
    if (!scan_.expect("(")) return -1;
    const int callee = parse_location_body(depth + 1);
    if (callee < 0 || !scan_.expect("at")) return -1;
    const int caller = parse_location_body(depth + 1);
    if (caller < 0 || !scan_.expect(")")) return -1;
    node.children = {callee, caller};
  } else if (scan_.accept("fused")) {
    node.kind = LocationNode::Kind::kFused;
    if (scan_.peek_char() == '<' && !scan_.balanced()) return -1;
    if (!scan_.expect("[")) return -1;
    while (!scan_.accept("]")) {
      if (!node.children.empty() && !scan_.expect(",")) return -1;
      const int child = parse_location_body(depth + 1);
      if (child < 0) return -1;
      node.children.push_back(child);
    }
  } else if (scan_.peek_char() == '#') {
    const auto name = scan_.suffix_identifier('#');
    if (!name) return -1;
    node.kind = LocationNode::Kind::kAlias;
    node.text = *name;
  } else {
    const auto text = scan_.quoted();
    if (!text) return -1;
    node.text = *text;
    if (scan_.accept(":")) {
      node.kind = LocationNode::Kind::kFile;
      const auto line = scan_.integer();
      if (!line || !scan_.expect(":") || !scan_.integer()) return -1;
      node.line = static_cast<int>(std::clamp<int64_t>(*line, 0, 1 << 30));
      if (scan_.accept("to")) {  // a range: ["file"]:line:column
        scan_.accept(":");
        if (!scan_.integer()) return -1;
        if (scan_.accept(":") && !scan_.integer()) return -1;
      }
    } else {
      node.kind = LocationNode::Kind::kName;
      if (scan_.accept("(")) {
        const int child = parse_location_body(depth + 1);
        if (child < 0 || !scan_.expect(")")) return -1;
        node.children = {child};
      }
    }
  }
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

void Parser::resolve_locations() {
  module_.lines.resize(op_nodes_.size());
  std::unordered_map<int, SourceLine> known;  // by the node that an alias stands for
  for (size_t i = 0; i < op_nodes_.size(); ++i) {
    int node = op_nodes_[i];
    const auto alias = aliases_.find(nodes_[static_cast<size_t>(node)].text);
    if (nodes_[static_cast<size_t>(node)].kind == LocationNode::Kind::kAlias && alias != aliases_.end())
      node = alias->second;
    const auto [entry, is_new] = known.try_emplace(node);
    int budget = 200;
    if (is_new) entry->second = resolve(node, 0, budget);
    module_.lines[i] = entry->second;
  }
}

// The innermost frame that is not Triton's own library.
SourceLine Parser::resolve(int id, int depth, int& budget) const {
  if (depth > kMaxLocationDepth || --budget < 0) return {};
  const LocationNode& node = nodes_[static_cast<size_t>(id)];
  switch (node.kind) {
    case LocationNode::Kind::kFile:
      return {node.text, node.line};
    case LocationNode::Kind::kAlias: {
      const auto target = aliases_.find(node.text);
      return target == aliases_.end() ? SourceLine{} : resolve(target->second, depth + 1, budget);
    }
    default:
      break;
  }
  SourceLine library;
  for (const int child : node.children) {
    const SourceLine line = resolve(child, depth + 1, budget);
    if (line.line == 0) continue;
    if (line.file.find("/triton/language/") == std::string::npos) return line;
    if (library.line == 0) library = line;
  }
  return library;
}

}  // namespace nereid::ttir
