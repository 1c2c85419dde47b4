// Expressions as Triton text: statements with a name for each value, each written once.
//
// A block of values has up to a few dimensions, each with a name ("row", "m"), the number of its elements
// that exist, and whether the block may reach beyond them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

struct BlockDimension {
  std::string name;  // of the Python variable that holds its indices
  Size extent = 1;
  bool exact = true;  // no index is beyond the extent
  bool wide = false;  // they are of 64 bits
};

// Names that a kernel has used, and its pointers: shared by all that is written into one kernel.
struct KernelNames {
  std::set<std::string> taken{"tl",     "triton", "libdevice",  "float", "range", "min",    "and",
                              "or",     "not",    "in",         "is",    "if",    "for",    "def",
                              "lambda", "class",  "batch_size", "del",   "from",  "global", "pass",
                              "with",   "True",   "False",      "None"};
  std::vector<std::pair<std::string, TensorId>> pointers;
  // Lines that give a program its place in a dimension, and where its block of that dimension starts. A
  // kernel that divides sums of quotients says after each that the start is not negative (close_kernel).
  std::vector<std::pair<std::string, std::string>> starts;
  bool divides_sums = false;

  // "x", or "x_1" where there is one.
  std::string fresh(const std::string& wish);
  std::string pointer(const Graph& graph, TensorId id);
};

class ExprWriter {
 public:
  ExprWriter(Graph& graph, KernelNames& names, std::vector<BlockDimension> dimensions);

  // The name or the literal of an expression's value; statements that make it go to `lines`. What traced
  // steps gave is made in the order of the steps, as who reads the task goes through it.
  std::string value(ExprId id);
  std::string let(const std::string& wish, const std::string& text);
  void line(const std::string& text) { (in_loop_ ? loop_ : lines_).push_back(text); }
  // A tensor that this kernel has made is in a register.
  void set_result(TensorId tensor, std::string name) { results_[tensor] = std::move(name); }

  // Between these, what uses one of `dimensions` goes into the loop's body, everything else before the loop.
  void begin_loop(std::vector<int> dimensions);
  void end_loop(const std::string& header);

  std::string text(const Index& index) const;
  // Pointer and mask of an address; the mask is empty where everything exists. `also`: conditions besides.
  std::string place(const std::string& pointer, const Index& address) const;
  std::string mask(const Index& address, const std::vector<std::string>& also = {}) const;
  std::string mask_of(const std::vector<int>& dimensions, const std::vector<std::string>& also = {}) const;
  // The condition under which an index is in its tensor; empty where it always is.
  std::string beyond(TensorId tensor, const std::vector<Index>& at) const;
  Index address(TensorId tensor, const std::vector<Index>& at) const;
  const Extents& extents() const { return extents_; }
  std::vector<std::string> take_lines() { return std::move(lines_); }

 private:
  std::string made(ExprId id);  // once
  std::string make(ExprId id);
  std::string load(const Expr& expr) { return load(expr, {}, "0", ""); }
  // As far as `given` holds, coordinates are in their tensor; elsewhere, and beyond the tensor, it is
  // `other`.
  struct Given {
    std::string text;            // empty: nothing
    std::vector<ExprId> within;  // what it says of coordinates
  };
  std::string load(const Expr& expr, const Given& given, const std::string& other, const std::string& wish);
  // where(it is in something, a load, a number) is a load whose mask says so.
  std::optional<std::string> padded_load(ExprId id, const Expr& expr);
  // A name for a coordinate that is checked against its tensor's size: it is written once. `from_end`: which
  // of the tensor's dimensions.
  std::string coordinate(const Index& index, size_t from_end);
  void widen_constants(const Expr& expr, std::vector<std::string>& args) const;
  std::string apply(ExprId id, const Expr& expr);
  std::optional<std::string> of_a_truth_value(const Expr& expr, const std::vector<std::string>& args,
                                              const std::string& own);
  std::string within(const Expr& expr);

  Graph& graph_;
  KernelNames& names_;
  std::vector<BlockDimension> dimensions_;
  Extents extents_;
  std::vector<std::string> lines_, loop_;
  bool in_loop_ = false;
  std::vector<int> loop_dimensions_;
  std::map<ExprId, std::string> known_;
  std::set<ExprId> of_the_loop_;
  std::map<TensorId, std::string> results_;
  std::map<Index, std::string> places_;  // coordinates that have a name
  std::set<Index> places_of_the_loop_;
};

std::string number_text(double value);
std::string constant_text(double value, DType type);
std::string type_text(DType type);
int64_t power_of_two(int64_t at_least);
// Whether blocks of `block` need no mask: they end with the last of `count`, and, where `masked`, at a
// glance.
bool ends_with_blocks(int64_t count, int64_t block, bool masked);
std::string identifier(const std::string& name);
// "total" for "sum": what operators are called, and builtins of Python too.
std::string clear_name(const std::string& name);  // letters, digits and underscores of it

}  // namespace nereid::compiler
