#include "nereid/replay/cuda/cuda_role.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "nereid/base/json.h"
#include "nereid/replay/worker/types.h"
#include "nereid/tracer/compiled_kernel.h"

namespace nereid::replay::cuda {

CudaRole::CudaRole(CudaMachine& machine, CacheFlush& flush, std::unique_ptr<Role> role)
    : machine_(machine), flush_(flush), role_(std::move(role)) {}

CudaRole::~CudaRole() = default;

Json CudaRole::handle(const std::string& verb, Message& request, std::vector<int>& descriptors) {
  // Of a role that has run nothing a lost context says nothing: another's fault, or the GPU's.
  if (machine_.lost() && !ran_)
    throw std::runtime_error("the GPU's context was lost before anything ran in it");
  if (machine_.lost())
    throw Failed(Failure::Kind::kCrashed, "the GPU's context was lost to an earlier fault");
  constexpr std::array<std::string_view, 7> kRunning = {"prepare",   "judge",  "needs",     "run",
                                                        "leave_out", "choose", "time_begin"};
  ran_ |= std::ranges::find(kRunning, verb) != kRunning.end();
  if (verb == "memory") return memory();
  if (verb == "kernel") return take_kernel(request);
  if (verb == "choose") return choose(request.document);
  if (verb == "time_begin") return time_begin(request.document);
  if (verb == "time") return time(request.document);
  if (verb == "time_end") return time_end();
  // Anything else moves the replay on: what was captured is no longer its forward.
  forward_.reset();
  // Overruns fault in one fenced replay, underruns in the next.
  if (verb == "run" && request.document.value("sanitize", false))
    machine_.fenced_memory().placement =
        fenced_runs_++ % 2 == 0 ? gpu::Placement::kAtEnd : gpu::Placement::kAtBegin;
  Json answer = role_->handle(verb, request, descriptors);
  if (verb == "load") answer["gpu"] = machine_.facts().name;
  return answer;
}

Json CudaRole::memory() {
  size_t free = 0, total = 0;
  const CUresult code = machine_.driver().cuMemGetInfo(&free, &total);
  TORCH_CHECK(code == CUDA_SUCCESS, "cuMemGetInfo: ", gpu::describe(machine_.driver(), code));
  return {{"free", free}};
}

Json CudaRole::take_kernel(Message& request) {
  TORCH_CHECK(!request.descriptors.empty(), "kernel: expected a file");
  const auto text = read_sealed_file(request.descriptors[0].get(), size_t{128} << 20);
  TORCH_CHECK(text.ok(), text.ok() ? "" : text.error().message);
  const auto document = parse_json(*text, "a compiled kernel");
  TORCH_CHECK(document.ok(), document.ok() ? "" : document.error().message);
  auto kernel = tracer::compiled_kernel_from_json(*document);
  TORCH_CHECK(kernel.ok(), kernel.ok() ? "" : kernel.error().message);
  machine_.add_kernel(request.document.at("hash").get<std::string>(), *std::move(kernel));
  return {{"ok", true}};
}

TimedForward& CudaRole::forward() {
  if (forward_ == nullptr)
    forward_ = std::make_unique<TimedForward>(machine_, role_->playing().replay, flush_);
  return *forward_;
}

Json CudaRole::choose(const Json& document) {
  machine_.fenced = false;
  options_ = role_->playing().options;
  options_.sanitize = false;
  options_.alternatives.clear();
  options_.deadline = Deadline::after(4 * document.at("seconds").get<double>() + 10);
  for (const auto& pair : document.at("alternatives")) options_.alternatives[pair.at(0)] = pair.at(1);
  const int timed =
      choose_alternatives(forward(), role_->playing().replay.program(), options_, document.at("seconds"));
  Json chosen = Json::array();
  for (const auto& [step, index] : options_.alternatives) chosen.push_back({step, index});
  return {{"alternatives", std::move(chosen)}, {"timed", timed}};
}

Json CudaRole::time_begin(const Json& document) {
  machine_.fenced = false;
  options_ = role_->playing().options;
  options_.sanitize = false;
  options_.alternatives.clear();
  options_.deadline = Deadline::after(document.at("seconds").get<double>());
  for (const auto& pair : document.at("alternatives")) options_.alternatives[pair.at(0)] = pair.at(1);
  forward_.reset();
  const std::string reason = forward().capture(options_);
  return {{"graph", reason}, {"input_sets", forward().input_sets()}};
}

Json CudaRole::time(const Json& document) {
  constexpr int kMaxSamples = 10000;
  const int count = std::clamp(document.at("count").get<int>(), 1, kMaxSamples);
  const Deadline deadline = Deadline::after(document.at("seconds").get<double>());
  options_.deadline = deadline;
  const bool graph = document.at("mode").get<std::string>() == "graph";
  return {
      {"samples", graph ? forward().graph(count, deadline) : forward().launches(options_, count, deadline)}};
}

Json CudaRole::time_end() {
  role_->copy_outputs();
  return {{"ok", true}};
}

}  // namespace nereid::replay::cuda
