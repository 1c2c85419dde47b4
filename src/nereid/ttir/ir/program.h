// A TTIR module as a typed SSA program: what the parser makes, the verifier checks and the lowering reads.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/ttir/ir/types.h"

namespace nereid::ttir {

enum class OpKind : uint8_t {
#define TTIR_OP(kind, name, traits) kind,
#include "nereid/ttir/ir/ops.def"
  kCount,
};
std::string_view to_string(OpKind kind);
OpKind op_named(std::string_view name);  // kCount when there is no such operation

enum OpTrait : uint8_t { kPure = 1, kTerminator = 2, kSameType = 4 };
uint8_t traits(OpKind kind);

using ValueId = int32_t;
using LocationId = int32_t;

// Where an operation comes from: the innermost frame of the user's own code. `line` 0: unknown.
struct SourceLine {
  std::string file;
  int line = 0;
};

// An attribute's value; which member counts follows from `kind`.
struct Attribute {
  enum class Kind : uint8_t { kUnit, kInteger, kText, kIntegers } kind = Kind::kUnit;
  int64_t integer = 0;
  std::string text;  // a string, a keyword, or a type as printed
  std::vector<int64_t> integers;
};

struct Region;
struct Successor {
  int block = -1;
  std::vector<ValueId> arguments;
};

struct Op {
  OpKind kind = OpKind::kCount;
  LocationId location = -1;
  std::vector<ValueId> operands, results;
  std::vector<Region> regions;
  std::vector<Successor> successors;
  std::map<std::string, Attribute, std::less<>> attributes;
  // Operand groups of operations that have several optional ones (dot_scaled, descriptors), in the order of
  // its format.
  std::vector<int32_t> segments;
  std::vector<uint64_t> constant;  // kConstant: one element's bits (a splat), or all of them, row-major

  bool has(std::string_view name) const { return attributes.find(name) != attributes.end(); }
  int64_t integer(std::string_view name, int64_t otherwise = 0) const;
  const std::string& text(std::string_view name) const;  // empty when absent
  const std::vector<int64_t>& integers(std::string_view name) const;
};

struct Block {
  std::vector<ValueId> arguments;
  std::vector<Op> ops;
};

struct Region {
  std::vector<Block> blocks;
};

struct Function {
  std::string name;
  bool is_public = false;
  LocationId location = -1;
  std::vector<ValueId> parameters;
  std::vector<std::string> parameter_names;
  std::vector<Type> results;
  Region body;
};

struct Module {
  std::vector<Function> functions;
  std::vector<Type> values;       // by ValueId, all functions together
  std::vector<SourceLine> lines;  // by LocationId

  const Type& type(ValueId value) const { return values[static_cast<size_t>(value)]; }
  const Function* find(std::string_view name) const;
};

}  // namespace nereid::ttir
