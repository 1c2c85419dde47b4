#include "nereid/search/program_text.h"

#include <gmock/gmock.h>

namespace nereid::search {
namespace {

using testing::HasSubstr;
using trace::Arg;
using trace::ValueId;

// y = mul(add(x, w), c), of a parameter made by randn and a constant that is known.
trace::Trace small() {
  trace::Trace trace;
  const auto tensor = [&](trace::Role role, std::string data = "") {
    trace.storages.push_back(
        {.bytes = 8, .role = role, .device = trace::Device::kCuda, .name = {}, .data = std::move(data)});
    trace::Value v;
    v.storage = static_cast<int>(trace.storages.size()) - 1, v.sizes = {2}, v.strides = {1};
    trace.values.push_back(v);
    return static_cast<ValueId>(trace.values.size() - 1);
  };
  const auto ref = [](ValueId id) { return Arg{trace::TensorRef{id}}; };
  const auto randn = [&](ValueId id) {
    return trace::Call{.op = "aten::randn",
                       .args = {Arg{trace::List{{Arg{int64_t{2}}}}}},
                       .kwargs = {{"device", Arg{trace::Named{"device", "cuda"}}}},
                       .result = ref(id),
                       .parts = {},
                       .place = {}};
  };
  const auto pointwise = [&](const char* op, ValueId a, ValueId b, ValueId result) {
    return trace::Call{
        .op = op, .args = {ref(a), ref(b)}, .kwargs = {}, .result = ref(result), .parts = {}, .place = {}};
  };
  const ValueId w = tensor(trace::Role::kParameter), x = tensor(trace::Role::kInput),
                c = tensor(trace::Role::kConstant, std::string("\0\0\x80\x3f\0\0\0\x40", 8)),
                sum = tensor(trace::Role::kTemporary), y = tensor(trace::Role::kTemporary);
  trace.values.push_back(trace.values[static_cast<size_t>(w)]);  // the parameter by another view
  const ValueId seen = static_cast<ValueId>(trace.values.size() - 1);
  trace.state = {{"w", seen, true, true}};
  const Arg inputs{trace::List{{ref(x)}}};
  trace.phases = {
      {.kind = trace::PhaseKind::kInit, .steps = {randn(w)}, .inputs = {}, .output = {}},
      {.kind = trace::PhaseKind::kMakeInputs, .call = 1, .steps = {}, .inputs = inputs, .output = {}},
      {.kind = trace::PhaseKind::kMakeInputs, .call = 2, .steps = {randn(x)}, .inputs = inputs, .output = {}},
      {.kind = trace::PhaseKind::kForward,
       .call = 2,
       .steps = {pointwise("aten::add.Tensor", x, seen, sum), pointwise("aten::mul.Tensor", sum, c, y)},
       .inputs = inputs,
       .output = ref(y)}};
  trace.phases[0].steps.emplace_back(trace::Call{
      .op = "nereid::constant", .args = {}, .kwargs = {}, .result = ref(c), .parts = {}, .place = {}});
  trace.flags = {{"matmul.allow_tf32", 1}};
  return trace;
}

TEST(ProgramText, IsTheTraceStepByStep) {
  const auto text = program_text(small(), "cuda");
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text, R"(import torch

DEVICE = "cuda"
torch.backends.cuda.matmul.allow_tf32 = True


def make():
    t0 = torch.ops.aten.randn.default([2], device=DEVICE)
    t1 = torch.ops.aten.randn.default([2], device=DEVICE)
    return [t1, ], [t0.as_strided([2], [1], 0), torch.frombuffer(bytearray.fromhex("0000803f00000040"), dtype=torch.uint8).view(torch.float32).to(DEVICE).as_strided([2], [1], 0), ]


class Model(torch.nn.Module):
    def __init__(self, state):
        super().__init__()
        for i, tensor in enumerate(state):
            self.register_buffer(f"w{i}", tensor)

    def forward(self, a0):
        t0 = torch.ops.aten.add.Tensor(a0, self.w0)
        t1 = torch.ops.aten.mul.Tensor(t0, self.w1)
        return t1
)");
}

TEST(ProgramText, OfWhatItIsNot) {
  auto launches = small();
  launches.phases.back().steps[0] = trace::Launch{.alternatives = {trace::Alternative{}}, .place = {}};
  EXPECT_THAT(program_text(launches, "cpu").error().message, HasSubstr("kernels of its own"));
  auto file = small();
  std::get<trace::Call>(file.phases.back().steps[0]).op = "aten::from_file";
  EXPECT_THAT(program_text(file, "cpu").error().message, HasSubstr("from_file is no operator"));
  auto nobody = small();
  nobody.phases[0].steps.clear();
  EXPECT_THAT(program_text(nobody, "cpu").error().message, HasSubstr("made by no step"));
  EXPECT_FALSE(program_text({}, "cpu").ok());
}

}  // namespace
}  // namespace nereid::search
