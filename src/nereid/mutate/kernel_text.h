// The text of a TTIR kernel as lines that can be edited: an operation's parts, types, and places in the
// source.
//
// This reads the form that Triton prints. What it cannot read it leaves alone, and every edited text goes
// through ttir::Kernel::load before it is used, so that an edit that does not fit costs a mutant and no more.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::mutate {

// `%x = arith.addf %a, %b : tensor<64xf32> loc(#loc3)`
struct Operation {
  std::string indent;
  std::string result;  // "%x"; empty where there is none
  int results = 0;     // 3 of `%x:3 = ...`
  std::string op;      // "arith.addf", "tt.reduce"
  bool quoted = false;
  std::string middle;    // from the operator's name to the type: "%a, %b"
  std::string type;      // after the last " : " outside brackets; empty where there is none
  std::string location;  // " loc(#loc3)", empty where there is none
  std::vector<std::string>
      operands;  // the names with which `middle` begins, after a predicate if there is one
};
std::optional<Operation> read_operation(std::string_view line);
std::string write(const Operation& operation);

// Types, as text. The element of "tensor<64x32x!tt.ptr<f32>>" is "!tt.ptr<f32>", of a scalar type the type.
std::string element_of(std::string_view type);
std::vector<int> shape_of(std::string_view type);  // empty for a scalar
std::string with_element(std::string_view type, std::string_view element);
bool is_float(std::string_view element);    // f16, bf16, f32, f64
bool is_integer(std::string_view element);  // i8 to i64; not i1
// The element that a pointer points to; empty where it is none.
std::string pointee_of(std::string_view element);

// The type of the one result; empty where this does not follow from the line.
std::string result_type(const Operation& operation);

// `NAME = arith.constant dense<TEXT> : TYPE`, in the indent of `like` and with its location.
std::string constant_line(const Operation& like, const std::string& name, const std::string& text,
                          const std::string& type);

class KernelText {
 public:
  explicit KernelText(std::string_view text);
  const std::vector<std::string>& lines() const { return lines_; }
  // Of each line that is an operation in a function's body.
  const std::vector<std::optional<Operation>>& operations() const { return operations_; }
  // The line that closes the region which this line opens; -1 where there is none.
  int end_of_region(int line) const;
  // The line of the source that an operation comes from, the caller's where it was inlined: 0 where that is
  // not known.
  int source_line(const Operation& operation) const;

 private:
  std::vector<std::string> lines_;
  std::vector<std::optional<Operation>> operations_;
};

}  // namespace nereid::mutate
