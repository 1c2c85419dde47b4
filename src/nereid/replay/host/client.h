// The judge's side of replay: a server that forks jailed workers, and sessions that hold one (reference,
// candidate) pair in two of them.
//
//   NEREID_TRY(auto server, Server::start({}));
//   NEREID_TRY(auto session, server->begin(reference, candidate, {}, deadline));
//   NEREID_TRY(TrialReport report, session->trial({.seed = 1}, {}, deadline));
//
// No libtorch here. An Error is a fault of ours (a lost reference worker, a full disk) or a task that does
// not fit; whatever the candidate does, a crash included, is data in the reports.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/result.h"
#include "nereid/replay/host/gpu_gate.h"
#include "nereid/replay/report.h"
#include "nereid/trace/trace.h"

namespace nereid::replay {

struct ServerOptions {
  std::string program = {};  // nereid-replay; empty: in the running program's folder
  bool jail = true;
  bool accept_weak_isolation = false;  // run even where the kernel allows too few isolation layers
  // CPU: candidates of one author, which have nothing to hide from each other. A worker then serves one
  // after the other, up to a limit, as the reference's does.
  bool one_author = false;
  std::string cuda_program = {};  // nereid-replay-cuda; likewise
  bool at_once = true;            // false: the CPU's process starts with the first session
  // On a GPU at a time; others wait. Their processes are made at once, in the background. 0: one, with the
  // first CUDA session.
  int cuda_sessions = 0;
};

struct SessionOptions {
  Device device = Device::kCpu;
  double phase_seconds = 30;  // each phase of the candidate
  int threads = 0;            // 0: one for small tasks, else all cores
  int64_t memory_limit = 0;   // bytes; 0: what the machine (or the cgroup, or the GPU) has free
  int64_t low_memory_above = int64_t{2} << 30;  // bytes that a session would take else: see memory_plan.h
  bool whole_memory = false;                    // no other session holds memory of the device meanwhile
  // CUDA: compiled kernels of both traces by trace::Kernel::hash, as tracer::to_json writes them. A launch of
  // one that is missing is refused.
  std::map<std::string, std::string> kernels = {};
  std::vector<LeftAsFound> left_as_found = {};  // of the candidate's
};

struct SessionFacts {
  int64_t peak_bytes = 0;               // what both workers need at most, float64 replay included
  bool frugal = false;                  // they hold no more than they must from one moment to the next
  std::vector<std::string> unpaired;    // the reference's state that the candidate lacks: see state_pairing.h
  std::vector<std::string> state_left;  // that the reference's forward writes and the candidate's does not
  bool integer_inputs = false;          // the judged call has integers or booleans that the host did not read
  bool state = false;                   // the module has parameters, or buffers that a caller may load
  std::vector<LaunchId> launches;       // of the candidate's last forward
  double seconds_waited = 0;            // CUDA, until it was open: for a turn, and for processes to be warm
  GpuUse gpu;                           // CUDA, so far: its turns on the GPU
};

class Session {
 public:
  virtual ~Session() = default;
  virtual const SessionFacts& facts() const = 0;

  // One replay of the candidate and then of the reference, compared.
  virtual Result<TrialReport> trial(const Trial& trial, const Tolerance& tolerance, Deadline deadline) = 0;

  // The last trial's forward again, in the candidate's worker: without these launches (steps of the phase),
  // everything that they or anybody else would have made poisoned. Only after a trial that did not fail.
  virtual Result<MutationReport> leave_out(const std::vector<int>& launches, Deadline deadline) = 0;

  // The last trial again with these alternatives (an autotuner's configurations), compared.
  virtual Result<TrialReport> try_alternatives(const ConfiguredRun& run, const Tolerance& tolerance,
                                               Deadline deadline) = 0;

  // What the trials so far did not move, where the candidate's host code reads integer inputs. On a CPU
  // alone, after the last trial: the candidate runs with other integers in memory, which it may not survive.
  // Empty where nothing is known.
  virtual Result<UnmovedReport> unmoved(Deadline) { return UnmovedReport{}; }

  // CUDA alone: both sides on the same GPU, in turns. After at least one trial.
  virtual Result<TimeReport> time(const TimeRequest& request, const Tolerance& tolerance,
                                  Deadline deadline) = 0;
};

class Server {
 public:
  static Result<std::unique_ptr<Server>> start(const ServerOptions& options);
  virtual ~Server() = default;

  // Thread-safe. A task that needs more memory than there is gives an Error that says how much; a candidate
  // whose trace cannot be prepared (an operator that a replay refuses) gives a session whose trials report
  // the failure.
  virtual Result<std::unique_ptr<Session>> begin(const trace::Trace& reference, const trace::Trace& candidate,
                                                 const SessionOptions& options, Deadline deadline) = 0;

  // The isolation layers around the workers of a device, in words (sandbox/jail/policy.h's describe); empty
  // before the first session.
  virtual std::string isolation(Device device) const = 0;
};

}  // namespace nereid::replay
