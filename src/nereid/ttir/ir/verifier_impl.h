// The rules of each operation: verifier.cpp holds those of control flow and regions, verifier_values.cpp the
// others.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {

class Verifier {
 public:
  explicit Verifier(const Module& module) : module_(module) {}
  Status run();

 private:
  const Type& type(ValueId v) const { return module_.type(v); }
  std::vector<Type> types(const std::vector<ValueId>& values) const {
    std::vector<Type> all;
    for (ValueId v : values) all.push_back(type(v));
    return all;
  }
  Error wrong(const Op& op, const std::string& expected) const;
  Status no_recursion(const Function& f, int depth);
  Status no_recursion(const Region& region, int depth);
  // `results`: the types that the terminator passes on.
  Status region(const Region& r, OpKind terminator, const std::vector<Type>& results);
  static bool same_shape(const Type& a, const Type& b) { return a.tensor == b.tensor && a.shape == b.shape; }
  static bool scalar(const Type& t, Elem e) { return !t.tensor && t.elem == e; }
  bool counts(const Op& op, size_t operands, size_t results) const {
    return op.operands.size() == operands && op.results.size() == results;
  }
  // Each leaves the kinds that it does not know to the next.
  Status check(const Op& op);
  Status check_conversion(const Op& op);
  Status check_effect(const Op& op);
  Status check_control(const Op& op);
  Status check_shape(const Op& op);
  Status check_resized(const Op& op);
  Status check_same_type(const Op& op);
  Status check_cast(const Op& op, bool elems);
  Status check_memory(const Op& op);
  Status check_atomic(const Op& op);
  Status check_call(const Op& op);
  Status check_for(const Op& op);
  Status check_while(const Op& op);
  Status combine_region(const Op& op, const std::vector<Type>& arguments, OpKind terminator,
                        const std::vector<Type>& results) {
    if (op.regions.size() != 1 || op.regions[0].blocks.size() != 1) return wrong(op, "a region of one block");
    if (types(op.regions[0].blocks[0].arguments) != arguments)
      return wrong(op, "region arguments of the element types");
    NEREID_TRY_STATUS(region(op.regions[0], terminator, results));
    return only_elementwise(op, op.regions[0].blocks[0]);
  }
  Status only_elementwise(const Op& outer, const Block& block);
  Status check_reduction(const Op& op);
  Status check_map(const Op& op);
  Status check_external(const Op& op);
  Status check_descriptor(const Op& op);
  Status check_dot(const Op& op);
  Status check_dot_scaled(const Op& op);
  static constexpr int kLazyDescriptorRank = 5;
  const Module& module_;
  std::set<ValueId> defined_;
  int calls_ = 0;
};

}  // namespace nereid::ttir
