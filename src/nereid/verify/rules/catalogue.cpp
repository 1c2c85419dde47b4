#include "nereid/verify/rules/catalogue.h"

#include <algorithm>
#include <array>

namespace nereid::verify {
namespace {

constexpr auto kRules = std::to_array<RuleEntry>({
    // Malformed
    {"no-code-block", VerdictKind::kMalformed,
     "Of a model's answer the last complete Python code block is judged.",
     "End the answer with one ```python block that is closed."},
    {"not-text", VerdictKind::kMalformed, "Source is UTF-8 text without NUL bytes.",
     "Save the file as UTF-8."},
    {"too-long", VerdictKind::kMalformed, "Answers are bounded, so that reading one costs little.",
     "Hand in the code alone."},
    {"no-model-class", VerdictKind::kMalformed,
     "A candidate is a class ModelNew with the reference's constructor and forward.",
     "Define class ModelNew(torch.nn.Module) at the top level of the file."},

    {"syntax", VerdictKind::kMalformed, "The file does not parse as Python.",
     "Fix the syntax at the line shown."},

    // Untraceable
    {"not-traceable", VerdictKind::kUntraceable, "The code does something that a trace cannot hold.",
     "Read the message: threads that outlive forward, memory shared with other libraries, launchers made by "
     "hand."},
    {"python-error", VerdictKind::kUntraceable,
     "The candidate raised while it was imported, constructed or called.",
     "Fix the error at the line shown. The candidate is called as the reference is: the same constructor "
     "arguments, the same "
     "inputs, on a device that answers as an H200."},
    {"reads-data", VerdictKind::kUntraceable,
     "Host code read the value of floating-point data, which a trace does not have: one trace must hold "
     "for every input.",
     "Keep the decision on the device, or derive it from shapes, constants or integer inputs."},
    {"sandbox-limit", VerdictKind::kUntraceable,
     "Tracing used more memory, processes or disk than the sandbox gives, or ended its own process.",
     "A forward pass only describes work: it needs neither processes nor files nor much memory."},

    // CompileFailed
    {"triton-front-end", VerdictKind::kCompileFailed, "Triton's front end refused the kernel.",
     "Read the diagnostics at the line shown."},
    {"malformed-ttir", VerdictKind::kCompileFailed,
     "What the candidate handed out as a kernel's text is not TTIR.",
     "Write kernels in Triton; please report a text that Triton's own front end made."},
    {"gpu-compiler", VerdictKind::kCompileFailed,
     "The kernel compiler could not make machine code of the kernel for this GPU.",
     "Use fewer registers or less shared memory: smaller blocks, fewer stages."},

    // Disallowed
    {"no-launch", VerdictKind::kDisallowed, "The task is to write Triton kernels, and forward launches none.",
     "Launch a kernel that does the work."},
    {"output-without-launch", VerdictKind::kDisallowed,
     "Every floating-point output must come from a Triton launch; this one is made by PyTorch or by nothing "
     "at all.",
     "Compute that output in a kernel."},
    {"launch-without-effect", VerdictKind::kDisallowed,
     "Leaving the kernel out, its outputs poisoned, did not change the answer: it does no work that counts.",
     "Use what the kernel computes, and drop the code that computes it again."},
    {"aten-compute", VerdictKind::kDisallowed,
     "PyTorch does work in forward that the policy reserves for Triton: under `strict` any computation, "
     "under `mostly` contractions, "
     "convolutions, attention, normalisations, reductions and scans over floating-point data. Work over "
     "integers counts "
     "where it derives from floating-point data, or is the only way to an output.",
     "Move that operation into a kernel, or judge under a wider policy."},
    {"aten-share", VerdictKind::kDisallowed,
     "Under `mostly` at least 90 % of the counted FLOPs and bytes must be Triton's.",
     "Fuse the remaining pointwise operations into a kernel."},
    {"input-written", VerdictKind::kDisallowed, "forward writes an input that the reference leaves alone.",
     "Write to a new tensor (torch.empty_like)."},
    {"state-written", VerdictKind::kDisallowed,
     "forward changes a parameter or a buffer that the reference leaves alone, in this call or an earlier "
     "one.",
     "Write to a tensor or a buffer of your own; packing into those is fine."},
    {"forged-trace", VerdictKind::kDisallowed,
     "The candidate's process answered what the tracer does not write: bytes that are no document, a trace "
     "of other "
     "inputs or calls.",
     "Leave the tracer alone: forward only describes work."},
    {"too-much-memory", VerdictKind::kDisallowed,
     "The candidate allocates many times what the reference does, so that no replay could hold it.",
     "Allocate what the task needs."},
    {"stale-output", VerdictKind::kDisallowed,
     "An output is in memory from before this call, and not all of it is surely written in this call.",
     "Allocate outputs in forward, or overwrite all of the buffer in every call."},
    {"shared-output", VerdictKind::kDisallowed,
     "An output is the memory of another output, of an input or a parameter, where the reference's is not.",
     "Write every output to memory of its own."},
    {"reuse-of-inputs", VerdictKind::kDisallowed,
     "forward uses something that it made from the inputs of an earlier call.",
     "Keep only workspace, and what derives from parameters alone, between calls."},
    {"another-trace", VerdictKind::kDisallowed,
     "The file gives another trace than the one that was judged before.",
     "Make what forward does depend on nothing but its inputs' shapes."},
    {"does-less", VerdictKind::kDisallowed,
     "A later call of forward does less of the work than the first for having been called before.",
     "Do all of the work in every call."},
    {"constant-output", VerdictKind::kDisallowed,
     "An output does not depend on the inputs, though the reference's does.",
     "Compute the output from the inputs."},
    {"host-computed", VerdictKind::kDisallowed,
     "Numbers that host Python worked out from the values of integer inputs are part of an output: a trace "
     "holds them "
     "for one draw of the inputs alone.",
     "Let a kernel compute them; the host may read such values to choose grids, shapes, addresses and "
     "masks."},
    {"random-draw", VerdictKind::kDisallowed,
     "forward draws random numbers, or sets a seed, where the reference does not.",
     "Remove the draw, or draw exactly as the reference does."},
    {"refused-operator", VerdictKind::kDisallowed,
     "The candidate calls an operator that no replay runs: files, raw memory, other processes.",
     "Use the inputs and parameters that forward is given."},
    {"int-to-ptr", VerdictKind::kDisallowed,
     "The kernel makes a pointer from a number that is no address of a table, and can reach any memory.",
     "Compute addresses from the kernel's pointer arguments, or load them from an int64 tensor of data_ptr() "
     "and use them for nothing else."},
    {"foreign-function", VerdictKind::kDisallowed, "The kernel calls machine code that came from elsewhere.",
     "Use tl.extra.libdevice."},
    {"inline-assembly", VerdictKind::kDisallowed,
     "The kernel holds assembly outside the short list of known elementwise instructions.",
     "Use Triton's own operations, or tl.extra.libdevice."},
    {"dependent-launch", VerdictKind::kDisallowed,
     "The kernel is launched with launch_pdl=True, so that it begins while the kernel before it runs, and "
     "accesses memory before it waits.",
     "Call tl.extra.cuda.gdc_wait() before the first load or store, outside of branches and loops."},

    // Unsafe
    {"out-of-bounds", VerdictKind::kUnsafe, "A load, store or atomic is outside its tensor.",
     "Mask it, or fix the index."},
    {"uninitialized-read", VerdictKind::kUnsafe, "The kernel reads unwritten bytes.",
     "Write them first, or mask the load. torch.empty holds no zeros."},
    {"race", VerdictKind::kUnsafe,
     "Two programs touch the same bytes, one of them writes, and not both atomically.",
     "Give each program its own part of the output, or use atomics."},
    {"misaligned", VerdictKind::kUnsafe,
     "An address is not divisible by its element's size, or a hint of its alignment does not hold.",
     "Index in elements, not bytes. Say tl.multiple_of and tl.max_contiguous of what is so for every input."},
    {"offset-overflow", VerdictKind::kUnsafe, "An address computation overflows its integer type.",
     "Compute offsets in 64 bits: pid.to(tl.int64)."},
    {"division-by-zero", VerdictKind::kUnsafe, "The kernel divides an integer by zero.",
     "Guard the divisor."},
    {"assertion", VerdictKind::kUnsafe, "A tl.device_assert or a tl.assume does not hold.",
     "Read the assertion at the line shown."},
    {"deadlock", VerdictKind::kUnsafe,
     "Programs wait for programs that cannot begin: more are launched than are surely resident together.",
     "Launch at most as many programs as the GPU has processors, or with launch_cooperative_grid=True; or "
     "wait only "
     "for programs that have begun, numbered by an atomic."},
    {"missing-barrier", VerdictKind::kUnsafe,
     "Lanes of one program pass data to each other, or to another program by a release, without a barrier.",
     "Put tl.debug_barrier() between, or load with the same offsets that were stored with."},
    {"order-dependent", VerdictKind::kUnsafe,
     "What comes out depends on the order in which the programs run.",
     "Let no program rely on being the first or the last, or on what others have done by then."},
    {"stream-order", VerdictKind::kUnsafe,
     "Work on one CUDA stream touches what another may still be writing or reading, or still runs when "
     "forward returns.",
     "Let the stream wait (wait_stream, an event): for the caller's before it begins, and the caller's for "
     "it "
     "at the end."},
    {"gpu-fault", VerdictKind::kUnsafe, "The kernel faulted on the GPU.",
     "Mask every access; check grids and strides."},
    {"crash", VerdictKind::kUnsafe, "The candidate's replay ended its process.",
     "Check indices and shapes that depend on data."},
    {"aten-error", VerdictKind::kUnsafe, "A PyTorch call of the candidate failed when it was run on data.",
     "Read the message: an index out of range, a shape that depends on data."},

    // Mismatch
    {"output-structure", VerdictKind::kMismatch,
     "The outputs differ from the reference's in number, shape or type.",
     "Return what the reference returns, with its shapes and dtypes."},
    {"values", VerdictKind::kMismatch,
     "An output's error against the reference in float64 exceeds four times the reference's own error.",
     "Look at the position shown. Accumulate in float32; check masks at the edges; use the parameters, which "
     "are perturbed so that "
     "gamma = 1 and beta = 0 hide nothing."},

    // TimedOut
    {"configurations", VerdictKind::kTimedOut,
     "An autotuner offers more configurations than can be compared in four times the time limit.",
     "Offer fewer configurations, or raise --time-limit."},
    {"time-limit", VerdictKind::kTimedOut, "A phase of the candidate took longer than its limit.",
     "Look for a loop that does not end; --time-limit raises the limit."},
    {"verdict-limit", VerdictKind::kTimedOut,
     "All replays of the candidate together took longer than a verdict may.",
     "Fewer or shorter launches; --verdict-limit raises the limit."},

    // Error
    {"budget", VerdictKind::kError, "The caller's time for the verdict was over before it was there.",
     "Ask again with more time; it says nothing about the candidate."},
    {"input", VerdictKind::kError, "The files or options given cannot be read.", "Read the message."},
    {"reference", VerdictKind::kError, "The reference itself cannot be traced or run.", "Fix the reference."},
    {"too-big", VerdictKind::kError, "The task does not fit this machine's memory.",
     "Use a GPU, or --shrink."},
    {"shrink", VerdictKind::kError, "--shrink found no smaller sizes that keep the task legal.",
     "Make the sizes module-level integer constants of the reference."},
    {"unsupported", VerdictKind::kError, "The kernel uses an operation that our executor does not know.",
     "Please report it."},
    {"lost-worker", VerdictKind::kError, "A worker process was lost twice.", "Try again."},
    {"below-roofline", VerdictKind::kError,
     "The time measured is below what the hardware can do, so it is not believed.", "Please report it."},
    {"no-gpu", VerdictKind::kError, "There is no GPU for --device cuda.", "Use --device cpu."},
    {"internal", VerdictKind::kError, "A fault of ours.", "Try again; please report it if it stays."},

    // Remarks: they decide nothing
    {"float-branch", VerdictKind::kVerified,
     "A kernel that looks at its data may do less for some of it; timing takes the slowest of several "
     "distributions.",
     "Nothing, if the branch is what the task needs."},
    {"frozen-parameters", VerdictKind::kVerified,
     "Something was made once from the parameters and is used again.",
     "Nothing, if the parameters stay as they are."},
    {"reused-output", VerdictKind::kVerified,
     "An output is a buffer that every call overwrites whole and returns again. `--forbid reused-output` "
     "refuses it.",
     "Nothing, if callers use an output before the next call, or copy it; else allocate outputs in forward."},
    {"state", VerdictKind::kVerified,
     "The reference's forward updates state, such as running statistics, that the candidate's leaves as it "
     "was.",
     "Update the same buffers where callers rely on them."},
    {"flags", VerdictKind::kVerified,
     "The candidate changed a global setting of PyTorch's. It has no effect on the reference.",
     "Leave torch.backends as it is."},
    {"parameters", VerdictKind::kVerified,
     "The candidate has no tensor for some of the reference's parameters; their defaults were not relied on.",
     "Name parameters as the reference does, with the same shapes."},
    {"note", VerdictKind::kVerified, "The tracer found something remarkable.", "Read the note."},
});

}  // namespace

std::span<const RuleEntry> catalogue() { return kRules; }

const RuleEntry* find_rule(std::string_view id) {
  const auto found =
      std::find_if(kRules.begin(), kRules.end(), [&](const RuleEntry& rule) { return rule.id == id; });
  return found == kRules.end() ? nullptr : &*found;
}

}  // namespace nereid::verify
