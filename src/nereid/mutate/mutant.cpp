#include "nereid/mutate/mutant.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sstream>

#include "nereid/base/hash.h"
#include "nereid/mutate/faults/kernel_faults.h"
#include "nereid/trace/format/codec.h"
#include "nereid/ttir/exec/executor.h"

namespace nereid::mutate {
namespace {

using Text = std::shared_ptr<const KernelText>;

std::string line_of_source(const trace::Kernel& kernel, int line) {
  std::istringstream lines(kernel.source);
  std::string text;
  for (int at = kernel.place.line; at <= line; ++at)
    if (!std::getline(lines, text)) return {};
  return line >= kernel.place.line ? text : std::string();
}

Mutant mutant_of(const trace::Kernel& kernel, int id, const Text& text, KernelFault fault) {
  Mutant mutant;
  mutant.fault = fault.fault, mutant.what = std::move(fault.what);
  mutant.kernel = kernel.name, mutant.file = kernel.place.file;
  mutant.line = text->source_line(*text->operations()[static_cast<size_t>(fault.line)]);
  mutant.source = line_of_source(kernel, mutant.line);
  for (const auto& edit : fault.edits) {
    for (int i = 0; i < edit.count; ++i)
      mutant.before.push_back(text->lines()[static_cast<size_t>(edit.first) + static_cast<size_t>(i)]);
    mutant.after.insert(mutant.after.end(), edit.lines.begin(), edit.lines.end());
  }
  mutant.apply = [id, text, edits = std::move(fault.edits)](trace::Trace& trace) {
    auto& changed = trace.kernels[static_cast<size_t>(id)];
    changed.ttir = edited(*text, edits);
    changed.hash = trace::kernel_hash(changed);
  };
  return mutant;
}

// The same fault in a copy of the kernel that one configuration alone runs.
Mutant in_one_configuration(Mutant mutant, int kernel, int step, int alternative) {
  mutant.fault = Fault::kConfiguration;
  mutant.step = step, mutant.alternative = alternative;
  mutant.apply = [apply = std::move(mutant.apply), kernel, step, alternative](trace::Trace& trace) {
    const trace::Kernel whole = trace.kernels[static_cast<size_t>(kernel)];
    apply(trace);
    const auto broken = static_cast<trace::KernelId>(trace.kernels.size());
    trace.kernels.push_back(std::exchange(trace.kernels[static_cast<size_t>(kernel)], whole));
    in_every_forward(trace, step, [&](trace::Phase& phase, size_t at) {
      auto* launch = std::get_if<trace::Launch>(&phase.steps[at]);
      if (launch != nullptr && static_cast<size_t>(alternative) < launch->alternatives.size())
        launch->alternatives[static_cast<size_t>(alternative)].kernel = broken;
    });
  };
  return mutant;
}

class Maker {
 public:
  explicit Maker(const trace::Trace& trace) : trace_(trace) {}

  std::map<Fault, std::vector<Mutant>> faults() {
    std::map<Fault, std::vector<Mutant>> found;
    const auto& steps = judged_phase(trace_).steps;
    std::set<int> kernels;
    for (size_t s = 0; s < steps.size(); ++s) {
      const auto* launch = std::get_if<trace::Launch>(&steps[s]);
      if (launch == nullptr) continue;
      kernels.insert(launch->alternatives.front().kernel);
      for (size_t a = 1; a < launch->alternatives.size(); ++a) {
        const int kernel = launch->alternatives[a].kernel;
        for (auto& fault : kernel_faults(*text(kernel)))
          found[Fault::kConfiguration].push_back(in_one_configuration(
              mutant(kernel, std::move(fault)), kernel, static_cast<int>(s), static_cast<int>(a)));
      }
    }
    for (const int kernel : kernels)
      for (auto& fault : kernel_faults(*text(kernel)))
        found[fault.fault].push_back(mutant(kernel, std::move(fault)));
    for (auto& fault : trace_faults(trace_)) found[fault.fault].push_back(std::move(fault));
    return found;
  }

  std::vector<Mutant> rewrites() {
    std::vector<Mutant> found;
    std::set<int> kernels;
    for (const auto& step : judged_phase(trace_).steps)
      if (const auto* launch = std::get_if<trace::Launch>(&step))
        kernels.insert(launch->alternatives.front().kernel);
    for (const int kernel : kernels)
      for (auto& fault : kernel_rewrites(*text(kernel))) found.push_back(mutant(kernel, std::move(fault)));
    return found;
  }

 private:
  const trace::Kernel& kernel(int id) const { return trace_.kernels[static_cast<size_t>(id)]; }
  Mutant mutant(int id, KernelFault fault) { return mutant_of(kernel(id), id, text(id), std::move(fault)); }
  const Text& text(int id) {
    auto& text = texts_[id];
    if (!text) text = std::make_shared<const KernelText>(kernel(id).ttir);
    return text;
  }

  const trace::Trace& trace_;
  std::map<int, Text> texts_;
};

// Whether every kernel that the mutant changed can be loaded, and at least something changed.
bool is_legal(const Subject& subject, const Mutant& mutant) {
  const trace::Trace changed = applied(subject, mutant);
  const auto& before = subject.candidate->kernels;
  for (size_t k = 0; k < changed.kernels.size(); ++k)
    if ((k >= before.size() || changed.kernels[k].ttir != before[k].ttir) &&
        !ttir::Kernel::load(changed.kernels[k].ttir).ok())
      return false;
  return trace::decode(trace::encode(changed)).ok();
}

std::mt19937_64 random_for(const Subject& subject, uint64_t seed) {
  std::seed_seq words{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                      static_cast<uint32_t>(std::stoul(sha256_hex(subject.id).substr(0, 8), nullptr, 16))};
  return std::mt19937_64(words);
}

}  // namespace

const trace::Phase& judged_phase(const trace::Trace& trace) { return trace.phases.back(); }

void in_every_forward(trace::Trace& trace, int step,
                      const std::function<void(trace::Phase&, size_t)>& change) {
  const size_t from_end = trace.phases.back().steps.size() - static_cast<size_t>(step);
  for (auto& phase : trace.phases)
    if (phase.kind == trace::PhaseKind::kForward && phase.steps.size() >= from_end)
      change(phase, phase.steps.size() - from_end);
}

trace::Trace applied(const Subject& subject, const Mutant& mutant) {
  trace::Trace trace = *subject.candidate;
  mutant.apply(trace);
  return trace;
}

std::vector<Mutant> mutants_of(const Subject& subject, uint64_t seed, int most) {
  auto random = random_for(subject, seed);
  auto found = Maker(*subject.candidate).faults();
  for (auto& [fault, mutants] : found) std::shuffle(mutants.begin(), mutants.end(), random);
  std::vector<Mutant> chosen;
  for (bool any = true; any && static_cast<int>(chosen.size()) < most;) {
    any = false;
    for (auto& [fault, mutants] : found) {
      while (!mutants.empty() && static_cast<int>(chosen.size()) < most) {
        Mutant mutant = std::move(mutants.back());
        mutants.pop_back();
        if (!is_legal(subject, mutant)) continue;
        chosen.push_back(std::move(mutant));
        any = true;
        break;
      }
    }
  }
  return chosen;
}

std::vector<Mutant> rewrites_of(const Subject& subject, uint64_t seed, int most) {
  auto random = random_for(subject, seed);
  auto found = Maker(*subject.candidate).rewrites();
  std::shuffle(found.begin(), found.end(), random);
  std::vector<Mutant> chosen;
  for (auto& rewrite : found) {
    if (static_cast<int>(chosen.size()) >= most) break;
    if (is_legal(subject, rewrite)) chosen.push_back(std::move(rewrite));
  }
  return chosen;
}

}  // namespace nereid::mutate
