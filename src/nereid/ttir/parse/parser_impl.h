// The parser's insides, shared by parser.cpp (modules, functions, regions, types, locations) and
// parser_ops.cpp and parser_control.cpp (the format of each operation).
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nereid/ttir/ir/program.h"
#include "nereid/ttir/parse/scanner.h"

namespace nereid::ttir {

class Parser {
 public:
  explicit Parser(std::string_view text) : scan_(text) {}
  bool parse_module();
  Module take() { return std::move(module_); }
  const std::string& message() const { return scan_.message(); }

 private:
  // A location as written; resolved to a SourceLine once all aliases are known.
  struct LocationNode {
    enum class Kind : uint8_t { kUnknown, kFile, kName, kCallSite, kFused, kAlias } kind = Kind::kUnknown;
    std::string text;  // file, name or alias
    int line = 0;
    std::vector<int> children;
  };
  struct BlockName {
    int index = -1;
    bool defined = false;
  };

  // parser.cpp
  bool parse_alias();
  bool parse_function();
  bool parse_region(Region& region, const std::vector<std::pair<std::string, ValueId>>& arguments,
                    bool isolated = false);
  bool parse_block_header(Region& region);
  bool parse_block_body(Region& region, size_t block);
  bool parse_op(Op& op);
  bool parse_generic_op(Op& op, size_t results);
  bool parse_type(Type& type);
  bool parse_element(Type& type);
  bool parse_tensor_body(Type& type);
  bool parse_type_list(std::vector<Type>& types);                                   // (T, T)
  bool parse_function_type(std::vector<Type>& inputs, std::vector<Type>& results);  // (T, T) -> T or (T, T)
  bool parse_attribute(Attribute& value);
  bool parse_attributes(Op& op);  // an optional {name = value, ...}
  bool parse_attribute_entries(Op& op, std::string_view end);
  bool parse_location(LocationId& id);  // an optional trailing loc(...)
  int parse_location_body(int depth);   // a node, or -1
  void resolve_locations();
  SourceLine resolve(int node, int depth, int& budget) const;

  ValueId new_value(const Type& type);
  bool define(const std::string& name, ValueId value);
  bool parse_use(ValueId& value);
  bool parse_uses(std::vector<ValueId>& values);  // %a, %b#1
  bool parse_uses_until(std::vector<ValueId>& values, char end);
  bool parse_bracketed_uses(std::vector<ValueId>& values);  // [%a, %b]
  int block_index(const std::string& name);
  const Type& type_of(ValueId value) const { return module_.values[static_cast<size_t>(value)]; }
  bool expect_types(const std::vector<ValueId>& values, const std::vector<Type>& types);

  // parser_ops.cpp: everything after the operation's name; result types go to `results`. The first three
  // leave the kinds that they do not know to the next.
  bool parse_format(Op& op, std::vector<Type>& results);
  bool parse_conversion(Op& op, std::vector<Type>& results);
  bool parse_control(Op& op, std::vector<Type>& results);
  bool parse_same_type(Op& op, std::vector<Type>& results);
  bool parse_cast(Op& op, std::vector<Type>& results, std::string_view arrow);
  bool parse_constant(Op& op, std::vector<Type>& results);
  bool parse_dense(Op& op, const Type& type, std::string_view body);
  bool parse_compare(Op& op, std::vector<Type>& results);
  bool parse_select(Op& op, std::vector<Type>& results);
  bool parse_extended(Op& op, std::vector<Type>& results);
  bool parse_classify(Op& op, std::vector<Type>& results);
  bool parse_pair(Op& op, std::vector<Type>& results);
  bool parse_gather(Op& op, std::vector<Type>& results);
  bool parse_load_store(Op& op, std::vector<Type>& results);
  bool parse_atomic(Op& op, std::vector<Type>& results);
  bool parse_dot(Op& op, std::vector<Type>& results);
  bool parse_dot_scaled(Op& op, std::vector<Type>& results);
  bool parse_inline_asm(Op& op, std::vector<Type>& results);
  bool parse_descriptor(Op& op, std::vector<Type>& results);
  bool parse_make_descriptor(Op& op, std::vector<Type>& results);
  bool parse_print(Op& op);
  bool parse_assert(Op& op);
  bool parse_condition(Op& op);
  bool parse_if(Op& op, std::vector<Type>& results);
  bool parse_for(Op& op, std::vector<Type>& results);
  bool parse_while(Op& op, std::vector<Type>& results);
  bool parse_branch(Op& op);
  bool parse_successor(Op& op);
  bool parse_call(Op& op, std::vector<Type>& results);
  bool parse_trailing_types(Op& op);  // `: T, T` for the operands, absent when there are none
  bool parse_keyword(Op& op, std::string_view attribute);
  bool skip_flags();  // fastmath<...>, overflow<...> and their like
  bool parse_loop_inits(Op& op, std::vector<std::string>& names);
  bool parse_results_arrow(std::vector<Type>& results);
  void note(Op& op, std::string_view name, int64_t value);

  Scanner scan_;
  Module module_;
  std::vector<LocationNode> nodes_;
  std::vector<int> op_nodes_;  // by LocationId
  std::unordered_map<std::string, int> aliases_;
  std::vector<std::unordered_map<std::string, std::vector<ValueId>>> scopes_;
  std::vector<std::unordered_map<std::string, BlockName>> block_names_;
  std::vector<int> block_counts_;
  std::string pending_name_;  // the first result's name
  int depth_ = 0;
  size_t ops_ = 0;
};

}  // namespace nereid::ttir
