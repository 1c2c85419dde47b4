#include "nereid/ttir/parse/parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "nereid/ttir/parse/parser_impl.h"

namespace nereid::ttir {
namespace {

constexpr size_t kMaxText = size_t{64} << 20;
constexpr size_t kMaxOps = size_t{1} << 20;
constexpr size_t kMaxValues = size_t{1} << 21;
constexpr size_t kMaxFunctions = 4096;
constexpr int kMaxRegionDepth = 100;

}  // namespace

Result<Module> parse(std::string_view text) {
  if (text.size() > kMaxText)
    return input_error("TTIR: expected at most {} bytes, got {}", kMaxText, text.size());
  Parser parser(text);
  if (!parser.parse_module()) return Error{parser.message(), Blame::kInput};
  return parser.take();
}

bool Parser::parse_module() {
  bool seen = false;
  while (!scan_.at_end() && !scan_.failed()) {
    if (scan_.peek_char() == '#') {
      if (!parse_alias()) return false;
      continue;
    }
    if (seen) return scan_.fail("expected the text to end after the module");
    seen = true;
    if (!scan_.accept("module") && !scan_.expect("builtin.module")) return false;
    if (scan_.peek_char() == '@' && !scan_.suffix_identifier('@')) return false;
    Op ignored;
    if (scan_.accept("attributes") && !parse_attributes(ignored)) return false;
    if (!scan_.expect("{")) return false;
    while (!scan_.accept("}"))
      if (!parse_function()) return false;
    LocationId location;
    if (!parse_location(location)) return false;
  }
  if (scan_.failed()) return false;
  if (!seen) return scan_.fail("expected a module");
  resolve_locations();
  return true;
}

// #loc3 = loc("file.py":1:2)
bool Parser::parse_alias() {
  const auto name = scan_.suffix_identifier('#');
  if (!name || !scan_.expect("=")) return false;
  if (!scan_.peek("loc")) {  // some other alias: nothing before ttgir has any that matter
    return scan_.unsupported(fmt::format("the alias #{}", *name));
  }
  if (!scan_.expect("loc") || !scan_.expect("(")) return false;
  const int node = parse_location_body(0);
  if (node < 0) return false;
  aliases_[*name] = node;
  return scan_.expect(")");
}

bool Parser::parse_function() {
  if (module_.functions.size() >= kMaxFunctions) return scan_.fail("too many functions");
  if (!scan_.peek("tt.func")) {
    const auto name = scan_.identifier();
    return name ? scan_.unsupported(fmt::format("{} in a module", *name)) : false;
  }
  scan_.expect("tt.func");
  Function function;
  function.is_public = scan_.accept("public");
  if (!function.is_public) scan_.accept("private");
  const auto name = scan_.suffix_identifier('@');
  if (!name || !scan_.expect("(")) return false;
  function.name = *name;
  scopes_.assign(1, {});
  std::vector<std::pair<std::string, ValueId>> arguments;
  while (!scan_.accept(")")) {
    if (!arguments.empty() && !scan_.expect(",")) return false;
    const auto argument = scan_.suffix_identifier('%');
    Type type;
    Op ignored;
    LocationId location;
    if (!argument || !scan_.expect(":") || !parse_type(type) || !parse_attributes(ignored) ||
        !parse_location(location))
      return false;
    const ValueId value = new_value(type);
    arguments.emplace_back(*argument, value);
    function.parameters.push_back(value);
    // loc("x"(#loc)) names the parameter; the printed name may carry a number.
    std::string parameter = *argument;
    if (location >= 0) {
      const auto& node = nodes_[static_cast<size_t>(op_nodes_[static_cast<size_t>(location)])];
      if (node.kind == LocationNode::Kind::kName) parameter = node.text;
      if (node.kind == LocationNode::Kind::kAlias && aliases_.count(node.text) != 0) {
        const auto& target = nodes_[static_cast<size_t>(aliases_[node.text])];
        if (target.kind == LocationNode::Kind::kName) parameter = target.text;
      }
    }
    function.parameter_names.push_back(parameter);
  }
  if (scan_.accept("->")) {
    if (scan_.peek_char() == '(') {
      if (!parse_type_list(function.results)) return false;
    } else {
      function.results.emplace_back();
      if (!parse_type(function.results.back())) return false;
    }
  }
  Op ignored;
  if (scan_.accept("attributes") && !parse_attributes(ignored)) return false;
  if (scan_.peek_char() == '{' && !parse_region(function.body, arguments, true)) return false;
  if (!parse_location(function.location)) return false;
  module_.functions.push_back(std::move(function));
  return true;
}

bool Parser::parse_region(Region& region, const std::vector<std::pair<std::string, ValueId>>& arguments,
                          bool isolated) {
  if (++depth_ > kMaxRegionDepth)
    return scan_.fail(fmt::format("regions nested deeper than {}", kMaxRegionDepth));
  if (!isolated) scopes_.emplace_back();
  block_names_.emplace_back();
  block_counts_.push_back(0);
  bool ok = scan_.expect("{");
  if (ok) {
    region.blocks.emplace_back();
    block_counts_.back() = 1;
    for (const auto& [name, value] : arguments) {
      region.blocks[0].arguments.push_back(value);
      ok = ok && define(name, value);
    }
    if (ok && scan_.peek_char() == '^') {  // the entry block may be named
      const auto name = scan_.suffix_identifier('^');
      ok = name.has_value();
      if (ok) block_names_.back()[*name] = {0, true};
      ok = ok && parse_block_header(region);
    }
    ok = ok && parse_block_body(region, 0);
    while (ok && scan_.peek_char() == '^') {
      const auto name = scan_.suffix_identifier('^');
      if (!name) break;
      const int index = block_index(*name);
      auto& entry = block_names_.back()[*name];
      if (entry.defined) ok = scan_.fail(fmt::format("block ^{} is defined twice", *name));
      entry.defined = true;
      // Blocks are numbered as they are first mentioned; make room for those mentioned before their
      // definition.
      if (region.blocks.size() < static_cast<size_t>(block_counts_.back()))
        region.blocks.resize(static_cast<size_t>(block_counts_.back()));
      region.blocks.emplace_back();
      std::swap(region.blocks.back(), region.blocks[static_cast<size_t>(index)]);
      ok = ok && parse_block_header(region) && parse_block_body(region, region.blocks.size() - 1);
      std::swap(region.blocks.back(), region.blocks[static_cast<size_t>(index)]);
      region.blocks.pop_back();
    }
    for (const auto& [name, block] : block_names_.back())
      if (ok && !block.defined) ok = scan_.fail(fmt::format("block ^{} is never defined", name));
    ok = ok && scan_.expect("}");
  }
  block_counts_.pop_back();
  block_names_.pop_back();
  if (!isolated) scopes_.pop_back();
  --depth_;
  return ok && !scan_.failed();
}

// (%a: T loc(..), %b: T):
bool Parser::parse_block_header(Region& region) {
  if (scan_.accept("(")) {
    while (!scan_.accept(")")) {
      if (!region.blocks.back().arguments.empty() && !scan_.expect(",")) return false;
      const auto name = scan_.suffix_identifier('%');
      Type type;
      LocationId location;
      if (!name || !scan_.expect(":") || !parse_type(type) || !parse_location(location)) return false;
      const ValueId value = new_value(type);
      region.blocks.back().arguments.push_back(value);
      if (!define(*name, value)) return false;
    }
  }
  return scan_.expect(":");
}

bool Parser::parse_block_body(Region& region, size_t block) {
  while (!scan_.failed() && scan_.peek_char() != '}' && scan_.peek_char() != '^') {
    if (scan_.at_end()) return scan_.fail("expected '}', the text ends");
    Op op;
    if (!parse_op(op)) return false;
    region.blocks[block].ops.push_back(std::move(op));
  }
  return !scan_.failed();
}

bool Parser::parse_op(Op& op) {
  if (++ops_ > kMaxOps) return scan_.fail("too many operations");
  std::vector<std::pair<std::string, int64_t>> names;  // a result's name and how many values it stands for
  size_t count = 0;
  if (scan_.peek_char() == '%') {
    do {
      const auto name = scan_.suffix_identifier('%');
      if (!name) return false;
      int64_t values = 1;
      if (scan_.accept(":")) {
        const auto number = scan_.integer();
        if (!number || *number < 1 || *number > 4096) return scan_.fail("expected a count of results");
        values = *number;
      }
      names.emplace_back(*name, values);
      count += static_cast<size_t>(values);
    } while (scan_.accept(","));
    if (!scan_.expect("=")) return false;
  }
  pending_name_ = names.empty() ? "" : names[0].first;
  if (scan_.peek_char() == '"') {
    if (!parse_generic_op(op, count)) return false;
  } else {
    const size_t start = scan_.position();
    const auto name = scan_.identifier();
    if (!name) return false;
    op.kind = op_named(*name);
    if (op.kind == OpKind::kCount || op.kind == OpKind::kFunc) {
      scan_.rewind(start);
      return scan_.unsupported(fmt::format("operation {}", *name));
    }
    std::vector<Type> results;
    if (!parse_format(op, results)) return false;
    for (const Type& type : results) op.results.push_back(new_value(type));
  }
  if (!parse_location(op.location)) return false;
  if (op.results.size() != count)
    return scan_.fail(
        fmt::format("expected {} results of {}, got {}", op.results.size(), to_string(op.kind), count));
  size_t next = 0;
  for (const auto& [name, values] : names) {
    auto& defined = scopes_.back()[name];
    if (!defined.empty()) return scan_.fail(fmt::format("%{} is defined twice", name));
    for (int64_t i = 0; i < values; ++i) defined.push_back(op.results[next++]);
  }
  return true;
}

// "tt.reduce"(%a, %b) <{axis = 0 : i32}> ({...}, {...}) {attributes} : (T, T) -> (T)
bool Parser::parse_generic_op(Op& op, size_t) {
  const auto name = scan_.quoted();
  if (!name) return false;
  op.kind = op_named(*name);
  if (op.kind == OpKind::kCount) return scan_.unsupported(fmt::format("operation {}", *name));
  switch (op.kind) {
    case OpKind::kReduce:
    case OpKind::kScan:
    case OpKind::kMapElementwise:
    case OpKind::kReduceReturn:
    case OpKind::kScanReturn:
    case OpKind::kMapElementwiseReturn:
      break;
    default:
      return scan_.unsupported(fmt::format("the generic form of {}", *name));
  }
  if (!scan_.expect("(") || !parse_uses_until(op.operands, ')')) return false;
  if (scan_.accept("<{") && (!parse_attribute_entries(op, "}") || !scan_.expect(">"))) return false;
  if (scan_.accept("(")) {
    do {
      op.regions.emplace_back();
      if (!parse_region(op.regions.back(), {})) return false;
    } while (scan_.accept(","));
    if (!scan_.expect(")")) return false;
  }
  std::vector<Type> inputs, results;
  if (!parse_attributes(op) || !scan_.expect(":") || !parse_function_type(inputs, results)) return false;
  if (!expect_types(op.operands, inputs)) return false;
  for (const Type& type : results) op.results.push_back(new_value(type));
  return true;
}

ValueId Parser::new_value(const Type& type) {
  if (module_.values.size() >= kMaxValues) {
    scan_.fail("too many values");
    return 0;
  }
  module_.values.push_back(type);
  return static_cast<ValueId>(module_.values.size()) - 1;
}

bool Parser::define(const std::string& name, ValueId value) {
  auto& values = scopes_.back()[name];
  if (!values.empty()) return scan_.fail(fmt::format("%{} is defined twice", name));
  values.push_back(value);
  return !scan_.failed();
}

bool Parser::parse_use(ValueId& value) {
  const auto name = scan_.suffix_identifier('%');
  if (!name) return false;
  int64_t index = 0;
  if (scan_.accept("#")) {
    const auto number = scan_.integer();
    if (!number) return false;
    index = *number;
  }
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->find(*name);
    if (found == scope->end()) continue;
    if (index < 0 || index >= static_cast<int64_t>(found->second.size()))
      return scan_.fail(fmt::format("%{} has {} values, not #{}", *name, found->second.size(), index));
    value = found->second[static_cast<size_t>(index)];
    return true;
  }
  return scan_.fail(fmt::format("%{} is not defined here", *name));
}

bool Parser::parse_uses(std::vector<ValueId>& values) {
  do {
    ValueId value;
    if (!parse_use(value)) return false;
    values.push_back(value);
  } while (scan_.accept(","));
  return true;
}

bool Parser::parse_uses_until(std::vector<ValueId>& values, char end) {
  const std::string closer(1, end);
  if (scan_.accept(closer)) return true;
  return parse_uses(values) && scan_.expect(closer);
}

bool Parser::parse_bracketed_uses(std::vector<ValueId>& values) {
  return scan_.expect("[") && parse_uses_until(values, ']');
}

int Parser::block_index(const std::string& name) {
  auto [entry, is_new] = block_names_.back().try_emplace(name);
  if (is_new) entry->second.index = block_counts_.back()++;
  return entry->second.index;
}

bool Parser::expect_types(const std::vector<ValueId>& values, const std::vector<Type>& types) {
  if (values.size() != types.size())
    return scan_.fail(fmt::format("expected {} types, got {}", values.size(), types.size()));
  for (size_t i = 0; i < values.size(); ++i)
    if (type_of(values[i]) != types[i])
      return scan_.fail(fmt::format("a value of type {} is used as {}", to_string(type_of(values[i])),
                                    to_string(types[i])));
  return true;
}

}  // namespace nereid::ttir
