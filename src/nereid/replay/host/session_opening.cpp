#include <algorithm>
#include <thread>

#include "nereid/base/memory.h"
#include "nereid/replay/deciding_state.h"
#include "nereid/replay/host/worker_session.h"
#include "nereid/trace/format/codec.h"

namespace nereid::replay {
namespace {

std::string gibibytes(int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

Json to_json(const std::vector<LeftAsFound>& all) {
  Json out = Json::array();
  for (const auto& one : all) out.push_back({one.storage, one.phase, one.step, one.may_be_dirty});
  return out;
}

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace

Status WorkerSession::open(const WorkerMaker& make, MemoryAdmission& memory, Deadline deadline) {
  const Stopwatch waiting;
  plan();
  const int threads = options_.threads > 0 ? options_.threads : is_small() ? 1 : cores();
  NEREID_TRY(r_, make("reference", threads));
  NEREID_TRY(c_, make("candidate", threads));
  NEREID_TRY_STATUS(send_kernels(reference_, *r_, deadline));
  NEREID_TRY_STATUS(send_kernels(candidate_, *c_, deadline));
  facts_.seconds_waited = waiting.seconds();  // for processes to be warm
  NEREID_TRY(const Fd reference_file, sealed_file(trace::serialize(reference_)));
  NEREID_TRY(const Fd candidate_file, sealed_file(trace::serialize(candidate_)));
  NEREID_TRY(auto loaded, request_reference({{"do", "load"},
                                             {"threads", threads},
                                             {"unmoved", tracks_unmoved()},
                                             {"every_call", !options_.left_as_found.empty()}},
                                            {reference_file.get(), r_->position().fd()}, deadline));
  if (!loaded) {  // the reference failed: trials say so
    reference_unloadable_ = true;
    return ok_status();
  }
  const Json& r = loaded->document;
  NEREID_TRY(auto candidate, request_candidate({{"do", "load"},
                                                {"threads", threads},
                                                {"may_keep_inputs", r.at("keeps_inputs")},
                                                {"states", states_of(false)},
                                                {"watched", watched(r)},
                                                {"kept", kept(r)},
                                                {"left_as_found", to_json(options_.left_as_found)},
                                                {"compared", pairing_.difference.empty()},
                                                {"inputs_written", r.at("inputs_written")}},
                                               {candidate_file.get(), c_->position().fd()}, deadline));
  if (!candidate) {
    load_failure_ = true;
    return ok_status();
  }
  const Json& c = candidate->document;
  gpu_ = r.value("gpu", "");
  for (const auto index : c.at("written_before").get<std::vector<size_t>>())
    written_before_.push_back(kept_names_.at(index));
  std::set<int> calls;
  for (const auto* side : {&r, &c})
    for (const auto& call : side->at("calls_used")) calls.insert(call.get<int>());
  NEREID_TRY(const auto most, plan_memory_of(c, calls, deadline));
  NEREID_TRY_STATUS(take_memory(most, memory, deadline));
  const auto gpu = share_gpu();  // all before this is work of the processors
  facts_.seconds_waited += facts_.gpu.waited;
  return connect(r, c, calls, deadline);
}

Status WorkerSession::send_kernels(const trace::Trace& trace, Worker& worker, Deadline deadline) const {
  if (options_.device == Device::kCuda && !worker.ask({{"do", "forget"}}, {}, deadline).answer)
    return our_error("a worker was lost before it began");
  for (const auto& kernel : trace.kernels) {
    const auto found = options_.kernels.find(kernel.hash);
    if (found == options_.kernels.end()) continue;
    NEREID_TRY(const Fd file, sealed_file(found->second));
    const auto reply = worker.ask({{"do", "kernel"}, {"hash", kernel.hash}}, {file.get()}, deadline);
    if (!reply.answer) return our_error("a worker is lost: {}", describe_end(reply.status));
    if (!reply.answer->document.contains("ok"))
      return our_error("a worker does not take kernel {}: {}", kernel.name, reply.answer->document.dump());
  }
  return ok_status();
}

bool WorkerSession::is_small() const {
  int64_t bytes = 0;
  for (const auto* t : {&reference_, &candidate_})
    for (const auto& storage : t->storages) bytes += storage.bytes;
  return bytes < (int64_t{64} << 20);
}

void WorkerSession::plan() {
  pairing_ = pair_outputs(reference_, candidate_);
  states_ = pair_state(reference_, candidate_);
  facts_.unpaired = states_.unpaired;
  for (const auto id : trace::tensors_in(judged_forward(reference_)->inputs)) {
    const auto& value = reference_.values[static_cast<size_t>(id)];
    facts_.integer_inputs |=
        trace::is_integral(value.dtype) && !reference_.storages[static_cast<size_t>(value.storage)].pinned;
  }
  for (const auto& state : reference_.state) {
    const auto& value = reference_.values[static_cast<size_t>(state.value)];
    facts_.state |= (state.parameter || state.persistent) && trace::is_floating(value.dtype);
    facts_.integer_inputs |= state.persistent && trace::is_integral(value.dtype) && !counts_batches(state);
  }
  const auto& steps = judged_forward(candidate_)->steps;
  for (size_t i = 0; i < steps.size(); ++i)
    if (std::holds_alternative<trace::Launch>(steps[i])) facts_.launches.push_back({static_cast<int>(i)});
  for (const auto& pair : pairing_.pairs) paths_.push_back(pair.path);
}

Json WorkerSession::states_of(bool reference) const {
  Json out = Json::array();
  for (const auto& [theirs, ours] : states_.values) out.push_back(reference ? theirs : ours);
  return out;
}

Result<Moment> WorkerSession::plan_memory_of(const Json& c, const std::set<int>& calls, Deadline deadline) {
  NEREID_TRY(
      const auto planned,
      request_reference({{"do", "plan"}, {"states", states_of(true)}, {"calls", calls}}, {}, deadline));
  if (!planned) return Moment{"", 0};
  const Json& r = planned->document;
  TaskFootprint task;
  task.device = options_.device;
  c.at("footprint").get_to(task.candidate);
  task.reference.own = r.at("own").get<Footprint>();
  if (!r.at("upcast").is_null()) task.reference.upcast = r.at("upcast").get<Footprint>();
  r.at("outputs").get_to(task.reference.outputs);
  r.at("upcast_outputs").get_to(task.reference.upcast_outputs);
  r.at("moved").get_to(task.reference.moved);
  r.at("inputs_block").get_to(task.inputs_block);
  c.at("outputs_block").get_to(task.outputs_block);
  facts_.frugal = largest(plan_memory(task, false)).bytes > options_.low_memory_above;
  const auto most = largest(plan_memory(task, facts_.frugal));
  facts_.peak_bytes = most.bytes;
  return most;
}

Status WorkerSession::take_memory(const Moment& most, MemoryAdmission& memory, Deadline deadline) {
  const bool cuda = options_.device == Device::kCuda;
  const auto measure = [&]() -> Result<int64_t> {
    if (options_.memory_limit > 0) return options_.memory_limit;
    if (!cuda) return available_memory();
    NEREID_TRY(const auto answer, request_reference({{"do", "memory"}}, {}, deadline));
    if (!answer) return our_error("a worker does not say what memory its GPU has");
    return answer->document.at("free").get<int64_t>();
  };
  const Stopwatch waiting;
  NEREID_TRY(auto turn, memory.take(most.bytes, measure, deadline, options_.whole_memory));
  facts_.seconds_waited += waiting.seconds();
  if (!turn.held)
    return input_error("the task needs {} to be replayed on the {}, {}; {} are free", gibibytes(most.bytes),
                       cuda ? "GPU" : "CPU", most.what, gibibytes(turn.capacity));
  memory_ = std::move(turn.held);
  return ok_status();
}

Json WorkerSession::watched(const Json& r) {
  Json out = Json::array();
  for (const auto written : r.at("state_written").get<std::vector<trace::ValueId>>())
    for (const auto& [theirs, ours] : states_.values)
      if (theirs == written) {
        watched_.push_back({theirs, ours});
        out.push_back(ours);
      }
  return out;
}

Json WorkerSession::kept(const Json& r) {
  const auto written = r.at("state_written").get<std::set<trace::ValueId>>();
  std::set<trace::StorageId> storages;  // state that is written may be seen under another name, too
  for (const auto id : written) storages.insert(reference_.values.at(id).storage);
  Json out = Json::array();
  for (size_t i = 0; i < states_.values.size(); ++i) {
    const auto [theirs, ours] = states_.values[i];
    if (!states_.registered[i] || storages.contains(reference_.values.at(theirs).storage)) continue;
    out.push_back(ours);
    kept_names_.push_back(name_of_state(theirs));
  }
  return out;
}

std::string WorkerSession::name_of_state(trace::ValueId value) const {
  const auto found = std::ranges::find(reference_.state, value, &trace::State::value);
  return found == reference_.state.end() ? "?" : found->name;
}

Status WorkerSession::connect(const Json& r, const Json& c, const std::set<int>& calls, Deadline deadline) {
  NEREID_TRY(auto shared,
             request_reference(
                 {{"do", "share"}, {"states", states_of(true)}, {"calls", calls}, {"frugal", facts_.frugal}},
                 {}, deadline));
  if (!shared) return ok_status();
  if (shared->descriptors.empty()) return our_error("the reference's worker sent no block");
  NEREID_TRY(auto attached, request_candidate({{"do", "attach"}, {"calls", calls}, {"frugal", facts_.frugal}},
                                              {shared->descriptors[0].get()}, deadline));
  if (!attached || !pairing_.difference.empty()) return ok_status();
  if (attached->descriptors.empty()) return our_error("a candidate's worker sent no block");
  Json shapes = Json::array();
  const auto add = [&](trace::ValueId id) {
    const auto& value = candidate_.values[id];
    shapes.push_back({{"dtype", trace::to_string(value.dtype)}, {"sizes", value.sizes}});
  };
  for (const auto& pair : pairing_.pairs) add(pair.candidate);
  const auto inputs = trace::tensors_in(judged_forward(candidate_)->inputs);
  for (const auto& index : r.at("inputs_written")) {
    inputs_mutated_.push_back(index.get<size_t>());
    paths_.push_back(fmt::format("input {} after the call", index.get<size_t>()));
    add(inputs.at(index.get<size_t>()));
  }
  Json state = Json::array();
  const auto written = c.at("state_written").get<std::set<trace::ValueId>>();
  for (const auto& [theirs, ours] : watched_) {
    if (!written.contains(ours)) {
      facts_.state_left.push_back(name_of_state(theirs));
      continue;
    }
    paths_.push_back(name_of_state(theirs) + " after the call");
    add(ours);
    state.push_back(theirs);
  }
  NEREID_TRY(auto taken, request_reference({{"do", "attach"}, {"outputs", shapes}, {"state", state}},
                                           {attached->descriptors[0].get()}, deadline));
  (void)taken;
  return ok_status();
}

}  // namespace nereid::replay
