// Small tasks and candidates, for tests and benches of replay.
#pragma once

#include <functional>
#include <string>

#include "tests/support/trace_sketch.h"

namespace nereid::replay {

// o[i] = x[i] OP y[i] for i < n, 64 elements a program.
inline std::string binary_ttir(const std::string& op) {
  std::string text = R"(module {
  tt.func public @binary(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32) attributes)"
                     R"( {noinline = false} {
    %c64_i32 = arith.constant 64 : i32
    %0 = tt.get_program_id x : i32
    %1 = arith.muli %0, %c64_i32 : i32
    %2 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %3 = tt.splat %1 : i32 -> tensor<64xi32>
    %4 = arith.addi %3, %2 : tensor<64xi32>
    %5 = tt.splat %n : i32 -> tensor<64xi32>
    %6 = arith.cmpi slt, %4, %5 : tensor<64xi32>
    %7 = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %8 = tt.addptr %7, %4 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %9 = tt.load %8, %6 : tensor<64x!tt.ptr<f32>>
    %10 = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %11 = tt.addptr %10, %4 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %12 = tt.load %11, %6 : tensor<64x!tt.ptr<f32>>
    %13 = arith.OP %9, %12 : tensor<64xf32>
    %14 = tt.splat %o : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %15 = tt.addptr %14, %4 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    tt.store %15, %13, %6 : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
)";
  return text.replace(text.find("OP"), 2, op);
}

struct TaskTensors {
  trace::ValueId x, y, w;
};
using TaskForward = std::function<trace::Arg(trace::Sketch&, const TaskTensors&)>;

// The phases of a task with two inputs of `n` elements and a parameter `w` of ones; `forward` adds the steps
// of a call and returns its output.
inline trace::Trace sample_task(bool reference, int64_t n, const TaskForward& forward) {
  using namespace trace;
  Sketch s;
  s.phase(PhaseKind::kModule);
  s.phase(PhaseKind::kInit);
  const Arg sizes{List{{Arg{n}}, false}};
  TaskTensors t{};
  t.w = s.tensor({n}, DType::kF32, Role::kParameter);
  s.step(make_call("aten::ones", {sizes}, tensor_arg(t.w)));
  s.trace.state.push_back({.name = "w", .value = t.w, .parameter = true});
  for (int call = 0; call < 3; ++call) {
    s.phase(PhaseKind::kMakeInputs, call);
    for (auto* input : {&t.x, &t.y}) {
      *input = s.tensor({n}, DType::kF32, Role::kInput);
      if (reference) s.step(make_call("aten::randn", {sizes}, tensor_arg(*input)));
    }
    s.trace.phases.back().inputs = tuple_of({t.x, t.y});
    s.phase(PhaseKind::kForward, call).inputs = tuple_of({t.x, t.y});
    auto output = forward(s, t);
    s.trace.phases.back().output = std::move(output);
  }
  return s.trace;
}

// x + y, by PyTorch.
inline trace::Trace sample_reference(int64_t n) {
  using namespace trace;
  return sample_task(true, n, [n](trace::Sketch& s, const TaskTensors& t) {
    const auto out = s.tensor({n});
    s.step(make_call("aten::add.Tensor", {tensor_arg(t.x), tensor_arg(t.y)}, tensor_arg(out)));
    return tensor_arg(out);
  });
}

// x OP y by a kernel whose argument says `count` elements; not launched at all where `launched` is
// false.
inline trace::Trace sample_candidate(const std::string& op, int64_t n, int64_t count, bool launched = true) {
  using namespace trace;
  return sample_task(false, n, [=](trace::Sketch& s, const TaskTensors& t) {
    const auto out = s.tensor({n});
    s.step(make_call("aten::empty_like", {tensor_arg(t.x)}, tensor_arg(out)));
    if (s.trace.kernels.empty()) {
      s.kernel("binary");
      s.trace.kernels[0].ttir = binary_ttir(op);
    }
    auto launch = trace::make_launch(0, {t.x, t.y, out});
    launch.alternatives[0].args.push_back(trace::IntArg{count});
    launch.alternatives[0].grid = {(n + 63) / 64, 1, 1};
    if (launched) s.step(launch);
    return tensor_arg(out);
  });
}

}  // namespace nereid::replay
