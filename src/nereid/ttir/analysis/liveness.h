// Which operation uses a value last.
#pragma once

#include <unordered_map>
#include <vector>

#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {

// For the operations of one region and those nested in it, but not called ones.
class Liveness {
 public:
  explicit Liveness(const Region& region) { scan(region); }

  // Whether `op` uses `value` itself and nothing after it does (nor anything nested in it).
  bool dies_at(const Op& op, ValueId value) const { return has(direct_, op, value); }
  // Values whose last use is nested in `op`: to be released after it.
  const std::vector<ValueId>& die_inside(const Op& op) const {
    static const std::vector<ValueId> none;
    const auto found = nested_.find(&op);
    return found == nested_.end() ? none : found->second;
  }

 private:
  using Map = std::unordered_map<const Op*, std::vector<ValueId>>;
  static bool has(const Map& map, const Op& op, ValueId value);
  void scan(const Region& region);

  Map direct_, nested_;
};

}  // namespace nereid::ttir
