// Hand-built traces for the tests of the rules: a module with parameter `w`, given one input, called three
// times.
#pragma once

#include <string>
#include <vector>

#include "nereid/verify/analysis/trace_analysis.h"

namespace nereid::verify {

class AnalysisBuilder {
 public:
  // Names a step: what it reads and writes are storages.
  struct Step {
    std::string name{};
    Work work = Work::kTriton;
    std::vector<int> reads{}, writes{};
    bool overwrites = false;
    bool random = false;
    double flops = 100, bytes = 100;
    std::string kind{};
    Work over_integers = Work::kFree;
    std::vector<StepAnalysis> before{};  // of a launch
    std::string same{};
    bool writes_all = false;  // every byte of each storage, surely
    std::vector<int> perhaps_writes{};
  };

  AnalysisBuilder() {
    w = storage(trace::Role::kParameter, "w");
    trace_.state.push_back({"w", value(w), true, true});
    for (int call = 0; call < 3; ++call) inputs.push_back(storage(trace::Role::kInput, "0"));
    begin(trace::PhaseKind::kModule, 0);
    begin(trace::PhaseKind::kInit, 0);
  }

  int storage(trace::Role role = trace::Role::kTemporary, const std::string& name = "") {
    trace_.storages.push_back(
        {.bytes = 400, .role = role, .device = {}, .name = name, .data = {}, .pinned = false});
    return static_cast<int>(trace_.storages.size()) - 1;
  }
  int value(int storage, trace::DType type = trace::DType::kF32) {
    trace::Value v;
    v.storage = storage, v.dtype = type, v.sizes = {100}, v.strides = {1};
    trace_.values.push_back(v);
    return static_cast<int>(trace_.values.size()) - 1;
  }

  // Steps go into the phase begun last; a forward phase is begun by `forward`.
  void step(const Step& s) {
    StepAnalysis facts{.name = s.name, .key = s.name, .kind = s.kind};
    facts.place = {"candidate.py", static_cast<int>(facts_.phases.back().steps.size()) + 1};
    facts.work = s.work, facts.overwrites = s.overwrites, facts.random = s.random, facts.flops = s.flops,
    facts.bytes = s.bytes;
    facts.reads.assign(s.reads.begin(), s.reads.end());
    facts.writes.assign(s.writes.begin(), s.writes.end());
    facts.perhaps_writes.assign(s.perhaps_writes.begin(), s.perhaps_writes.end());
    facts.over_integers = s.over_integers, facts.before = s.before, facts.same = s.same;
    if (s.writes_all)
      for (const int id : s.writes)
        facts.ranges.push_back(
            {.storage = id, .first = 0, .last = 400, .coverage = WrittenRange::Coverage::kAll});
    facts_.phases.back().steps.push_back(facts);
    if (s.work == Work::kTriton) {
      trace::Launch launch;
      launch.alternatives.emplace_back();
      trace_.phases.back().steps.emplace_back(launch);
    } else {
      trace_.phases.back().steps.emplace_back(trace::Call{});
    }
  }
  int forward(int call) {
    begin(trace::PhaseKind::kMakeInputs, call);
    trace_.phases.back().inputs = tensors({inputs[static_cast<size_t>(call)]});
    begin(trace::PhaseKind::kForward, call);
    trace_.phases.back().inputs = tensors({inputs[static_cast<size_t>(call)]});
    return inputs[static_cast<size_t>(call)];
  }
  void returns(const std::vector<int>& storages, trace::DType type = trace::DType::kF32) {
    trace_.phases.back().output = tensors(storages, type);
  }
  void kernel(const std::string& name, const KernelAnalysis& facts) {
    trace::Kernel kernel;
    kernel.name = name, kernel.place = {"candidate.py", 7};
    trace_.kernels.push_back(kernel);
    facts_.kernels.push_back(facts);
  }

  // out = name(in) in every one of the three calls, of a fresh output.
  AnalysisBuilder& plain(const std::string& name, Work work) {
    for (int call = 0; call < 3; ++call) {
      const int in = forward(call), out = storage();
      step({.name = name, .work = work, .reads = {in, w}, .writes = {out}});
      returns({out});
    }
    return *this;
  }

  trace::Trace& trace() { return trace_; }
  const TraceAnalysis& facts() {
    facts_.trace = &trace_;
    return facts_;
  }

  int w = 0;
  std::vector<int> inputs;

 private:
  void begin(trace::PhaseKind kind, int call) {
    trace::Phase phase;
    phase.kind = kind, phase.call = call;
    trace_.phases.push_back(phase);
    facts_.phases.push_back({kind, call, {}});
  }
  trace::Arg tensors(const std::vector<int>& storages, trace::DType type = trace::DType::kF32) {
    trace::List list;
    for (const int s : storages) list.items.push_back(trace::Arg{trace::TensorRef{value(s, type)}});
    return trace::Arg{list};
  }

  trace::Trace trace_;
  TraceAnalysis facts_;
};

}  // namespace nereid::verify
