#include "nereid/render/program_text.h"

#include <gmock/gmock.h>

namespace nereid::render {
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
  EXPECT_EQ(text->text, R"(import torch

DEVICE = "cuda"
torch.backends.cuda.matmul.allow_tf32 = True


def make():
    t0 = torch.ops.aten.randn.default([2], device=DEVICE)
    t1 = torch.ops.aten.randn.default([2], device=DEVICE)
    return [t1, ], [t0.as_strided([2], [1], 0), torch.frombuffer(bytearray.fromhex("0000803f00000040"),)"
                        R"( dtype=torch.uint8).view(torch.float32).to(DEVICE).as_strided([2], [1], 0), ]


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

// The sum of `small` by a kernel that is offered in so many configurations.
trace::Trace launching(int configurations) {
  auto trace = small();
  auto& forward = trace.phases.back().steps;
  const auto& sum = std::get<trace::Call>(forward[0]);
  trace::Launch launch;
  for (int i = 0; i < configurations; ++i) {
    trace.kernels.push_back({.name = "sum",
                             .ttir = {},
                             .hash = fmt::format("ab{}", i),
                             .options = {{"num_warps", 4}, {"num_stages", 3}},
                             .text_options = {},
                             .constants = {{"BLOCK", "64"}, {"KIND", "tl.float16\"; import os"}},
                             .place = {},
                             .source = {}});
    trace::Alternative alternative{.kernel = i, .grid = {2, 1, 1}, .args = {}, .before = {}, .config = {}};
    for (const auto id : {trace::tensors_in(sum.args[0])[0], trace::tensors_in(sum.args[1])[0],
                          trace::tensors_in(sum.result)[0]})
      alternative.args.emplace_back(trace::PointerArg{id});
    alternative.args.emplace_back(trace::IntArg{2});
    alternative.args.emplace_back(trace::FloatArg{3});
    launch.alternatives.push_back(alternative);
  }
  auto empty = std::get<trace::Call>(trace.phases[2].steps[0]);
  empty.result = sum.result;
  forward[0] = empty;
  forward.insert(forward.begin() + 1, launch);
  return trace;
}

TEST(ProgramText, LaunchesAsTritonsUsersDo) {
  const auto one = program_text(launching(1), "cuda");
  ASSERT_TRUE(one.ok()) << one.error().message;
  EXPECT_EQ(one->kernels, (std::map<std::string, int>{{"ab0", 2}}));
  EXPECT_THAT(one->text, HasSubstr("@triton.jit\n"
                                   "def kernel0(p0, p1, p2, p3, p4, C0: tl.constexpr, C1: tl.constexpr, ):\n"
                                   "    pass\n\n\n"
                                   "called_kernels.bind(kernel0, \"ab0\")\n"));
  EXPECT_THAT(one->text, HasSubstr("        kernel0[(2, 1, 1)](a0, self.w0, t0, 2, 3.0, C0=64, "
                                   "C1=\"tl.float16\\\"; import os\", num_warps=4, num_stages=3, )\n"));
  const auto two = program_text(launching(2), "cuda");
  ASSERT_TRUE(two.ok()) << two.error().message;
  EXPECT_EQ(two->kernels.size(), 2U);
  EXPECT_THAT(two->text, HasSubstr("called_kernels.fastest(0, lambda: kernel0[(2, 1, 1)](a0, "));
  EXPECT_THAT(two->text, HasSubstr(", lambda: kernel1[(2, 1, 1)](a0, "));
}

// A candidate's inputs are the reference's.
TEST(ProgramText, MakesACandidatesInputsAsItsReferenceDoes) {
  auto candidate = launching(1);
  candidate.phases[2].steps.clear();
  EXPECT_THAT(program_text(candidate, "cuda").error().message, HasSubstr("made by no step"));
  const auto reference = small();
  const auto text = program_text(candidate, "cuda", &reference);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_THAT(text->text, HasSubstr("def make_inputs():\n"
                                    "    t0 = torch.ops.aten.randn.default([2], device=DEVICE)\n"
                                    "    return [t0, ], []\n"));
  EXPECT_THAT(text->text, HasSubstr("def make():\n"
                                    "    given, _ = make_inputs()\n"
                                    "    t0 = torch.ops.aten.randn.default([2], device=DEVICE)\n"
                                    "    return [given[0], ], [t0.as_strided([2], [1], 0), "));
  auto two = small();
  two.phases.back().inputs = Arg{trace::List{}};
  EXPECT_THAT(program_text(candidate, "cuda", &two).error().message, HasSubstr("called with 0 tensors"));
}

TEST(ProgramText, OfWhatItIsNot) {
  EXPECT_THAT(program_text(launching(1), "cpu").error().message, HasSubstr("no GPU"));
  auto shifted = launching(1);
  std::get<trace::PointerArg>(std::get<trace::Launch>(shifted.phases.back().steps[1]).alternatives[0].args[0])
      .offset = 4;
  EXPECT_THAT(program_text(shifted, "cuda").error().message, HasSubstr("not a tensor's"));
  auto file = small();
  std::get<trace::Call>(file.phases.back().steps[0]).op = "aten::from_file";
  EXPECT_THAT(program_text(file, "cpu").error().message, HasSubstr("from_file is not an operator"));
  auto unmade = small();
  unmade.phases[0].steps.clear();
  EXPECT_THAT(program_text(unmade, "cpu").error().message, HasSubstr("made by no step"));
  EXPECT_FALSE(program_text({}, "cpu").ok());
}

}  // namespace
}  // namespace nereid::render
