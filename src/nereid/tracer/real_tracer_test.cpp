// The tracer itself in its jail, and the compiler after it: a reference, then a candidate on the reference's
// inputs, then the machine code of the candidate's kernel.
#include <gtest/gtest.h>

#include "nereid/base/file.h"
#include "nereid/tracer/kernel_compiler.h"
#include "nereid/tracer/tracer.h"

namespace nereid::tracer {
namespace {

constexpr const char* kReference = R"(
import torch
class Model(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(256) * scale)
    def forward(self, x, n):
        return torch.relu(x) * self.weight + n
N = 64
def get_inputs(): return [torch.randn(N, 256), torch.randint(1, 9, (1,))]
def get_init_inputs(): return [2.0]
)";

constexpr const char* kCandidate = R"(
import torch, triton, triton.language as tl
@triton.jit
def relu_scale(x_ptr, w_ptr, n_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0) * BLOCK
    x = tl.maximum(tl.load(x_ptr + row + i), 0.0)
    tl.store(out_ptr + row + i, x * tl.load(w_ptr + i) + tl.load(n_ptr))
class ModelNew(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(256) * scale)
    def forward(self, x, n):
        out = torch.empty_like(x)
        relu_scale[(x.shape[0],)](x, self.weight, n, out, BLOCK=256)
        return out
)";

const trace::Launch* only_launch(const trace::Trace& trace) {
  const trace::Launch* found = nullptr;
  for (const auto& step : trace.phases.back().steps)
    if (const auto* launch = std::get_if<trace::Launch>(&step)) found = launch;
  return found;
}

TEST(RealTracer, TracesAReferenceThenACandidateOnItsInputs) {
  const auto installation = Installation::locate().value();
  const auto folder = TemporaryFolder::create().value();
  auto tracer = Tracer::start({.installation = installation}).value();
  auto trace = [&](const TraceRequest& request) {
    auto answer = tracer->trace(request, Deadline::after(280)).value();
    if (auto* why = std::get_if<Untraceable>(&answer))
      ADD_FAILURE() << why->phase << ": " << why->type << ": " << why->message;
    return answer;
  };

  const auto first = trace({.source = kReference, .path = "reference.py", .globals = {{"N", 4}}});
  ASSERT_TRUE(std::holds_alternative<trace::Trace>(first)) << first.index();
  const auto& reference = std::get<trace::Trace>(first);
  const auto second = trace(
      {.source = kCandidate, .path = "candidate.py", .class_name = "ModelNew", .reference = &reference});
  ASSERT_TRUE(std::holds_alternative<trace::Trace>(second)) << second.index();
  const auto& candidate = std::get<trace::Trace>(second);

  EXPECT_EQ(candidate.class_name, "ModelNew");
  const trace::Launch* launch = only_launch(candidate);
  ASSERT_NE(launch, nullptr);
  EXPECT_EQ(launch->alternatives[0].grid[0], 4);  // N was put in place of the file's 64
  EXPECT_EQ(launch->place.file, "candidate.py");

  auto compiler = KernelCompiler::start({.installation = installation, .cache = folder.path()}).value();
  const auto& kernel = candidate.kernels[static_cast<size_t>(launch->alternatives[0].kernel)];
  const auto compiled = compiler->compile(kernel, 90, Deadline::after(280)).value();
  ASSERT_TRUE(std::holds_alternative<CompiledKernel>(compiled))
      << std::get<CompileDiagnostics>(compiled).message;
  EXPECT_EQ(std::get<CompiledKernel>(compiled).params.size(), launch->alternatives[0].args.size());
}

}  // namespace
}  // namespace nereid::tracer
