// A call of an operator, prepared: the schema is resolved and every argument but the tensors converted, once.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nereid/replay/worker/argument_checks.h"
#include "nereid/replay/worker/inputs/tf32_products.h"
#include "nereid/replay/worker/machine.h"
#include "nereid/trace/trace.h"

namespace nereid::replay {

// What the prepared calls of one replay share while they run.
class Operands {
 public:
  virtual ~Operands() = default;
  // With `shape_only`, a storage that was not made because no step reads its data is made now.
  virtual at::Tensor operand(trace::ValueId value, bool shape_only) = 0;
  virtual void bind(trace::ValueId value, at::Tensor result) = 0;
  virtual at::Generator generator(const std::string& name) = 0;  // "cuda:1234"
  virtual void seed(uint64_t seed) = 0;                          // torch.manual_seed
  // A generator's state, kept under a number, and put back; the default ones where there is no name.
  virtual void save_generator(int64_t number, const std::string& name) = 0;
  virtual void restore_generator(int64_t number, const std::string& name) = 0;
  // How calls that may use TF32 round the factors of their products.
  Tf32Rounding tf32;
};

class PreparedCall {
 public:
  // Throws Failed (kRefused) where the operator is unknown, not to be replayed, or the arguments don't fit
  // it.
  static PreparedCall prepare(const trace::Call& call, const trace::Trace& trace, const Machine& machine);

  void run(Operands& operands) const;

  // Facts for the data flow.
  const std::vector<trace::ValueId>& reads() const { return reads_; }  // every tensor argument
  const std::vector<trace::ValueId>& writes() const {
    return writes_;
  }  // of these, the ones the operator may write
  const std::vector<trace::ValueId>& results() const { return results_; }
  const std::vector<trace::ValueId>& bound_results() const {
    return bound_results_;
  }  // those in storages of their own
  bool random() const { return random_; }                // draws from a generator (or sets its seed)
  bool only_metadata() const { return only_metadata_; }  // changes a tensor's sizes and strides, no data
  bool allocates() const { return allocates_; }          // its results hold nothing: torch.empty and its kin
  bool shape_only() const { return shape_only_; }  // looks at no argument's data: zeros_like and its kin
  // Whether there is anything to do: false for what only makes views of its arguments.
  bool does_work() const {
    return seed_ || state_ || allocates_ || !result_slots_.empty() || (!only_metadata_ && !writes_.empty());
  }

 private:
  struct TensorSlot {
    enum class Shape { kOne, kList, kOptionalList } shape{};
    size_t argument = 0;
    std::vector<trace::ValueId> values;  // -1: none
  };
  struct ResultSlot {
    size_t position = 0;  // in the returns
    int64_t item = -1;    // in a list that is returned
    trace::ValueId value = -1;
  };
  struct GeneratorSlot {
    size_t argument = 0;
    std::string name;
  };
  class Builder;

  PreparedCall() = default;
  std::optional<c10::OperatorHandle> op_;  // none for `nereid::` operators
  std::optional<uint64_t> seed_;           // nereid::manual_seed
  struct GeneratorState {
    bool save = false;
    int64_t number = 0;
    std::string generator;
  };
  static GeneratorState generator_state(const std::string& op, const trace::Call& call);
  std::optional<GeneratorState> state_;  // nereid::save_generator, nereid::restore_generator
  // A random operator that was upcast to float64 draws in the dtype it had: the result is copied.
  std::optional<c10::ScalarType> draws_in_;
  std::optional<ElementBounds> within_;
  std::vector<c10::IValue> arguments_;
  std::vector<TensorSlot> tensors_;
  std::vector<GeneratorSlot> generators_;
  std::vector<ResultSlot> result_slots_;
  std::vector<trace::ValueId> reads_, writes_, results_, bound_results_;
  bool random_ = false, only_metadata_ = false, allocates_ = false, shape_only_ = false;
  bool tf32_ = false;              // marked by `upcast`: factors are rounded to TF32 (tf32_products.h)
  bool several_products_ = false;  // ... those inside, too
  bool order_check_ = false;       // marked by `upcast`: see order_sensitivity.h
};

}  // namespace nereid::replay
