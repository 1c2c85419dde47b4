// A trace written down by hand: tensors and calls, one after the other, as the tracer would record them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nereid/ops/layout.h"
#include "nereid/trace/trace.h"

namespace nereid::ops {

using trace::Arg;
using trace::DType;
using Tensor = trace::TensorRef;

Arg arg(Tensor tensor);
Arg arg(int64_t value);
Arg arg(double value);
Arg arg(bool value);
Arg none();
Arg integers(const Sizes& values);
Arg tensors(const std::vector<Tensor>& all, bool tuple = false);
Arg named(std::string kind, std::string name);

class Recording {
 public:
  // Calls go to the last phase of `trace`.
  explicit Recording(trace::Trace& trace) : trace_(trace), last_of_(trace.storages.size(), -1) {}

  const trace::Value& value(Tensor tensor) const { return trace_.values[static_cast<size_t>(tensor.value)]; }
  Laid laid(Tensor tensor) const { return {value(tensor).sizes, value(tensor).strides}; }
  DType type(Tensor tensor) const { return value(tensor).dtype; }
  bool is_learned(Tensor tensor) const;

  // A storage of its own, dense.
  Tensor made(Laid laid, DType type = DType::kF32);
  Tensor made(const Sizes& sizes, DType type = DType::kF32) { return made({sizes, row_major(sizes)}, type); }
  // Another look at its storage; `further` elements after its first. The same look is the same tensor.
  Tensor look(Tensor of, Laid laid, int64_t further = 0);
  trace::Storage& storage(Tensor tensor) {
    return trace_.storages[static_cast<size_t>(value(tensor).storage)];
  }

  using Named = std::vector<std::pair<std::string, Arg>>;
  // The calls that follow stand in this line of the file; the first of them, with `first`, in an earlier one.
  void at(int line, int first = 0) { line_ = line, first_line_ = first; }
  void call(std::string_view op, std::vector<Arg> args, Arg result, Named named = {});
  Tensor call(std::string_view op, std::vector<Arg> args, Tensor result, Named named = {}) {
    call(op, std::move(args), arg(result), std::move(named));
    return result;
  }

 private:
  trace::Trace& trace_;
  std::vector<trace::ValueId> last_of_;  // of each storage: its newest value
  std::vector<trace::ValueId> before_;   // of each value: the one of its storage that is next older
  int line_ = 0, first_line_ = 0;
};

}  // namespace nereid::ops
