// What a trial moves through memory: the operators that the reference's worker and the candidate's run, with
// the bytes that each reads and writes. On a CPU, with the kernels that compare outputs on a GPU run by the
// host, so that the passes are those of a GPU worker. The candidate's Triton kernels are left out.
//
//   bench/trial_traffic REFERENCE.trace CANDIDATE.trace [DISTRIBUTION]...     (traces: nereid trace -o)
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "nereid/replay/message.h"
#include "nereid/replay/protocol.h"
#include "nereid/replay/state_pairing.h"
#include "nereid/replay/structure.h"
#include "nereid/replay/worker/cpu_machine.h"
#include "nereid/replay/worker/roles/role.h"
#include "nereid/replay/worker/types.h"
#include "nereid/trace/format/codec.h"
#include "tests/support/host_kernels.h"

namespace nereid::replay {
namespace {

struct Traffic {
  int64_t calls = 0, read = 0, written = 0;
};

// By operator; an operator that is made of others counts as these, where they move a quarter of its bytes.
std::map<std::string, Traffic> traffic;
std::vector<int64_t> inside;  // bytes that the operators within each running one have moved
void note(const std::string& name, int64_t read, int64_t written) {
  auto& of = traffic[name];
  ++of.calls, of.read += read, of.written += written;
  for (auto& bytes : inside) bytes += read + written;
}

int64_t bytes_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return 0;
  return std::min(static_cast<int64_t>(tensor.nbytes()), static_cast<int64_t>(tensor.storage().nbytes()));
}

template <typename F>
void for_tensors(c10::ArrayRef<const c10::IValue> values, F body) {
  for (const auto& value : values) {
    if (value.isTensor() && value.toTensor().defined()) body(value.toTensor());
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector()) body(tensor);
  }
}

struct Frame : at::ObserverContext {
  int64_t read = 0;
  std::set<const void*> storages;
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  auto frame = std::make_unique<Frame>();
  for_tensors(function.inputs(), [&](const at::Tensor& tensor) {
    frame->read += bytes_of(tensor);
    if (tensor.has_storage()) frame->storages.insert(tensor.storage().unsafeGetStorageImpl());
  });
  inside.push_back(0);
  return frame;
}

void end(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto& frame = static_cast<const Frame&>(*context);
  const int64_t counted = inside.back();
  inside.pop_back();
  const std::string name = function.name();
  int64_t written = 0;
  bool makes = false;
  const auto& outputs = function.outputs();
  for_tensors(
      c10::ArrayRef<const c10::IValue>(outputs.data(), outputs.size()), [&](const at::Tensor& tensor) {
        written += bytes_of(tensor);
        makes |= tensor.has_storage() && !frame.storages.contains(tensor.storage().unsafeGetStorageImpl());
      });
  const bool in_place = name.ends_with("_") || name.ends_with("_out");
  if (name.starts_with("aten::empty") || name == "aten::set_" || name == "aten::_set_conj") return;
  if (!makes && !in_place && name != "aten::equal" && name != "aten::_local_scalar_dense") return;  // a view
  static const std::set<std::string> fills = {"aten::fill_",    "aten::zero_",   "aten::copy_",
                                              "aten::uniform_", "aten::normal_", "aten::random_"};
  const bool overwrites = fills.contains(name);
  const int64_t read = overwrites ? frame.read - (in_place ? written : 0) : frame.read;
  if (4 * counted < read + written) note(name, read, written);
}

int64_t size_of(const kernels::Elements& elements) {
  return elements.type == kernels::kFloat64                                          ? 8
         : elements.type == kernels::kFloat32                                        ? 4
         : elements.type == kernels::kFloat16 || elements.type == kernels::kBFloat16 ? 2
                                                                                     : 1;
}

class CountingKernels final : public HostLauncher {
 public:
  void launch(kernels::Kernel kernel, int64_t blocks, const void* parameters, size_t bytes) const override {
    using enum kernels::Kernel;
    static const char* kNames[] = {"scale",    "own error",   "got error",  "both errors", "tail",
                                   "close",    "agree",       "runs",       "columns",     "values",
                                   "all runs", "all columns", "all values", "fold"};
    const auto elements = [](const kernels::Inputs& in, bool with_answer) {
      return in.count * (size_of(in.own) + size_of(in.truth) + (with_answer ? size_of(in.answer) : 0) +
                         (in.agreed != nullptr ? 1 : 0));
    };
    int64_t read = 0, written = 0;
    if (kernel <= kErrorPair) {
      read = elements(static_cast<const kernels::MetricParameters*>(parameters)->in,
                      kernel == kReferenceError || kernel == kCandidateError || kernel == kErrorPair);
    } else if (kernel == kTail) {
      const auto& p = *static_cast<const kernels::TailParameters*>(parameters);
      read = elements(p.in, true), written = p.errors != nullptr ? 4 * p.in.count : 0;
    } else if (kernel == kClose) {
      const auto& p = *static_cast<const kernels::CloseParameters*>(parameters);
      read = p.count * (size_of(p.first) + p.second_stride * size_of(p.second));
    } else if (kernel == kAgree) {
      const auto& p = *static_cast<const kernels::AgreeParameters*>(parameters);
      read = p.count * (size_of(p.truth) + size_of(p.other) + 1);
    } else if (kernel == kFold) {
      const auto& p = *static_cast<const kernels::FoldParameters*>(parameters);
      read = p.workers * p.width * p.count * 8;
    } else {
      const auto& p = *static_cast<const kernels::SumParameters*>(parameters);
      read = elements(p.in, kernel >= kAllRuns || p.of_truth == 0);
    }
    note(fmt::format("kernel {}", kNames[static_cast<int>(kernel)]), read, written);
    HostLauncher::launch(kernel, blocks, parameters, bytes);
  }
};

void report(const std::string& request, double unit) {
  std::vector<std::pair<std::string, Traffic>> rows(traffic.begin(), traffic.end());
  std::ranges::sort(rows, std::greater(),
                    [](const auto& row) { return row.second.read + row.second.written; });
  Traffic all;
  for (const auto& [name, of] : rows) all.calls += of.calls, all.read += of.read, all.written += of.written;
  fmt::print("{}: {} calls, {:.1f} + {:.1f} MB, {:.1f} bytes an element\n", request, all.calls,
             static_cast<double>(all.read) / 1e6, static_cast<double>(all.written) / 1e6,
             static_cast<double>(all.read + all.written) / unit);
  for (const auto& [name, of] : rows)
    if (static_cast<double>(of.read + of.written) > 0.01 * unit)
      fmt::print("    {:32} {:5} calls  {:7.2f} + {:7.2f} bytes an element\n", name, of.calls,
                 static_cast<double>(of.read) / unit, static_cast<double>(of.written) / unit);
  traffic.clear();
}

// A role that is called without a socket.
struct Player {
  Json ask(const char* verb, Json document, std::vector<Fd> descriptors = {}) {
    Message request{std::move(document), std::move(descriptors)};
    given.clear();
    return role->handle(verb, request, given);
  }
  Json load(const trace::Trace& trace, Json document) {
    std::vector<Fd> descriptors;
    descriptors.push_back(sealed_file(serialize(trace)).value());
    descriptors.emplace_back(memfd_create("position", MFD_CLOEXEC));
    if (ftruncate(descriptors[1].get(), 4096) != 0) std::abort();
    return ask("load", std::move(document), std::move(descriptors));
  }
  std::vector<Fd> block() const {
    std::vector<Fd> out;
    out.emplace_back(dup(given.at(0)));
    return out;
  }
  std::unique_ptr<Role> role;
  std::vector<int> given = {};
};

trace::Trace read_trace(const char* path) {
  auto text = read_file(path);
  if (!text.ok()) std::exit((std::fprintf(stderr, "%s\n", text.error().message.c_str()), 2));
  auto parsed = trace::parse(*text, path);
  if (!parsed.ok()) std::exit((std::fprintf(stderr, "%s\n", parsed.error().message.c_str()), 2));
  return std::move(parsed).value();
}

constexpr double kSlack = 16;  // of other distributions, as in verify/stages/trials.h

int run(const trace::Trace& given, const trace::Trace& candidate_trace,
        const std::vector<std::string>& kinds) {
  const auto reference_trace = pinned_as(given, candidate_trace);
  const auto pairing = pair_outputs(reference_trace, candidate_trace);
  if (!pairing.difference.empty()) return std::fprintf(stderr, "%s\n", pairing.difference.c_str()), 2;
  const auto paired = pair_state(reference_trace, candidate_trace);
  Json theirs = Json::array(), ours = Json::array(), paths = Json::array(), shapes = Json::array();
  for (const auto& [reference, candidate] : paired.values)
    theirs.push_back(reference), ours.push_back(candidate);
  double unit = 0;  // elements of the outputs
  for (const auto& pair : pairing.pairs) {
    const auto& value = candidate_trace.values[pair.candidate];
    paths.push_back(pair.path);
    shapes.push_back({{"dtype", trace::to_string(value.dtype)}, {"sizes", value.sizes}});
    unit += static_cast<double>(trace::element_count(value));
  }
  const ReplayMode mode;
  const auto machine = make_cpu_machine();
  use_fused_metrics(std::make_unique<FusedMetrics>(std::make_unique<CountingKernels>()), c10::kCPU);
  Player reference{make_reference_role(*machine)}, candidate{make_candidate_role(*machine)};
  const auto r = reference.load(reference_trace, {{"threads", 2}});
  const auto c = candidate.load(candidate_trace, {{"threads", 2},
                                                  {"compared", true},
                                                  {"may_keep_inputs", r.at("keeps_inputs")},
                                                  {"states", ours},
                                                  {"inputs_written", r.at("inputs_written")},
                                                  {"watched", Json::array()}});
  std::set<int> calls;
  for (const auto* side : {&r, &c})
    for (const auto& call : side->at("calls_used")) calls.insert(call.get<int>());
  reference.ask("share", {{"states", theirs}, {"calls", calls}, {"frugal", false}});
  candidate.ask("attach", {{"calls", calls}, {"frugal", false}}, reference.block());
  reference.ask("attach", {{"outputs", shapes}, {"state", Json::array()}}, candidate.block());
  at::addGlobalCallback(at::RecordFunctionCallback(begin, end).needsInputs(true).needsOutputs(true));
  uint64_t seed = 4;
  for (const auto& kind : kinds) {
    const auto distribution = input_distribution_from_string(kind);
    if (!distribution) return std::fprintf(stderr, "expected a distribution, got '%s'\n", kind.c_str()), 2;
    const auto trial = to_json(Trial{.seed = seed += 2, .distribution = *distribution});
    Tolerance tolerance;
    if (*distribution != InputDistribution::kOwn) tolerance.slack *= kSlack;
    traffic.clear();
    const auto prepared = reference.ask("prepare", {{"trial", trial}});
    report(kind + ", prepare", unit);
    if (!prepared.at("applicable").get<bool>()) continue;
    candidate.ask("run",
                  {{"seed", seed}, {"sanitize", false}, {"seconds", 600}, {"alternatives", Json::array()}});
    report(kind + ", run", unit);
    const auto judged =
        reference.ask("judge", {{"trial", trial}, {"tolerance", to_json(tolerance)}, {"paths", paths}});
    report(fmt::format("{}, judge (agrees: {})", kind, judged.at("comparison").at("agrees").dump()), unit);
  }
  return 0;
}

}  // namespace
}  // namespace nereid::replay

int main(int argc, char** argv) {
  using namespace nereid::replay;
  if (argc < 3)
    return std::fprintf(stderr, "usage: trial_traffic REFERENCE.trace CANDIDATE.trace [DISTRIBUTION]...\n"),
           2;
  std::vector<std::string> kinds(argv + 3, argv + argc);
  if (kinds.empty()) kinds = {"own", "huge", "outliers", "negative"};
  return run(read_trace(argv[1]), read_trace(argv[2]), kinds);
}
