#include "nereid/search/dynamic_batch.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "nereid/compiler/module.h"
#include "nereid/compiler/output/any_batch.h"
#include "nereid/compiler/output/forward_text.h"
#include "nereid/compiler/output/source_file.h"
#include "nereid/search/guarded.h"

namespace nereid::search {
namespace {

constexpr int64_t kMaxElements = (int64_t{1} << 31) - 1;  // of a tensor, as far as offsets of 32 bits reach

constexpr double kShareOfLeft = 0.5;  // of the time, for the verdict at a larger batch

struct BatchInput {
  std::string name;  // of forward's parameter
  int64_t batch = 0;
};

Result<BatchInput> batch_input(const Task& task) {
  const trace::Arg& inputs = task.trace.phases.back().inputs;
  NEREID_TRY(const auto file, compiler::read_source(task.name, task.source, "Model", "ModelNew", {},
                                                    compiler::signature_for(inputs)));
  std::optional<BatchInput> found;
  const auto look = [&](const trace::Arg& arg, const std::string& name) {
    const auto* ref = std::get_if<trace::TensorRef>(&arg.node);
    if (found || ref == nullptr || name.empty()) return;
    const auto& sizes = task.trace.values[static_cast<size_t>(ref->value)].sizes;
    if (!sizes.empty()) found = BatchInput{name, sizes[0]};
  };
  if (const auto* list = std::get_if<trace::List>(&inputs.node))
    for (size_t i = 0; i < list->items.size(); ++i) look(list->items[i], compiler::argument_text(file, i));
  else if (const auto* dict = std::get_if<trace::Dict>(&inputs.node))
    for (const auto& item : dict->items) look(item.second, compiler::argument_text(file, item.first));
  else
    look(inputs, compiler::argument_text(file, 0));
  if (found) return *std::move(found);
  return input_error(
      "--dynamic batch: {}: expected a tensor with a leading size among forward's arguments, got none",
      task.name);
}

std::vector<int64_t> sizes_of(const trace::Trace& trace) {
  std::set<int64_t> sizes;
  for (const auto& value : trace.values) sizes.insert(value.sizes.begin(), value.sizes.end());
  return {sizes.begin(), sizes.end()};
}

int64_t max_elements(const trace::Trace& trace) {
  int64_t most = 1;
  for (const auto& value : trace.values) most = std::max(most, trace::element_count(value));
  return most;
}

class Writer {
 public:
  Writer(Evaluator& evaluator, const Task& task, const compiler::Guard& guard, bool fallback,
         Deadline deadline)
      : evaluator_(evaluator), task_(task), guard_(guard), fallback_(fallback), deadline_(deadline) {}

  Result<DynamicBatch> run() {
    NEREID_TRY(input_, batch_input(task_));
    std::array<int64_t, 3> batches;
    std::array<std::unique_ptr<const Task>, 3> tasks;
    std::optional<Result<std::string>> text;
    // A small batch may have a form of its own, such as one program for all rows: then larger ones are
    // compared.
    for (const int64_t times : {1, 4, 16, 64}) {
      batches = compiler::batches_around(times * input_.batch, sizes_of(task_.trace));
      auto made = written_for(batches, tasks);
      if (!text || made.ok()) text = std::move(made);
      if (text->ok() || text->error().blame != Blame::kInput) break;
    }
    if (!text->ok()) return text->error();
    std::string code = *std::move(*text);
    code = "\"\"\"For any batch. Figures are those of a batch of " + std::to_string(batches[1]) + ".\n\n" +
           plan_ + "\"\"\"\n" + code;
    NEREID_TRY(const trace::Trace candidate, evaluator_.trace_of(*tasks[2], code, "ModelNew"));
    made_.largest = static_cast<int64_t>(
        static_cast<double>(kMaxElements) * static_cast<double>(batches[2]) /
        static_cast<double>(std::max(max_elements(tasks[2]->trace), max_elements(candidate))));
    NEREID_TRY(const bool modes, mode_matters(evaluator_, *tasks[2], code));
    std::vector<int64_t> small = {1, 2, batches[0]};
    for (const int64_t least : small) {
      made_.judged.clear();
      made_.least = least;
      const compiler::Assumptions assumptions{.reference = tasks[2]->trace,
                                              .candidate = candidate,
                                              .modes = modes,
                                              .fallback = fallback_ ? task_.source : "",
                                              .direct = true,
                                              .other_batch = &tasks[1]->trace,
                                              .batches = {batches[2], batches[1]},
                                              .passing = {made_.least, made_.largest}};
      NEREID_TRY(made_.source, guard_.around(code, assumptions));
      made_.assumptions = compiler::assumptions_text(assumptions);
      const auto began = std::chrono::steady_clock::now();
      NEREID_TRY(const bool own, judge(input_.batch));
      if (!own) return std::move(made_);
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
      NEREID_TRY(const bool many, judge(larger_batch(took.count())));
      if (!many) return std::move(made_);
      const auto few = judge(least);
      if ((few.ok() && *few) || least == small.back()) break;
    }
    return std::move(made_);
  }

 private:
  Result<std::unique_ptr<const Task>> at(int64_t batch) {
    if (batch == input_.batch) return evaluator_.trace(task_.name, task_.source, deadline_);
    auto made =
        evaluator_.trace(task_.name, compiler::with_batch(task_.source, input_.batch, batch), deadline_);
    if (!made.ok())
      return Error{fmt::format("--dynamic batch: at a batch of {} in place of {}: {}", batch, input_.batch,
                               made.error().message),
                   made.error().blame};
    return made;
  }

  Result<std::string> written_for(const std::array<int64_t, 3>& batches,
                                  std::array<std::unique_ptr<const Task>, 3>& tasks) {
    std::array<compiler::WrittenFor, 3> written;
    plan_.clear(), choices_.clear();
    for (size_t i = 0; i < 3; ++i) {
      NEREID_TRY(tasks[i], at(batches[i]));
    }
    for (const size_t i : {size_t{1}, size_t{0}, size_t{2}}) {
      const size_t other = i == 1 ? 0 : 1;
      NEREID_TRY(
          written[i].code,
          lowered(*tasks[i], {.trace = &tasks[other]->trace, .batch = batches[i], .other = batches[other]}));
      written[i].batch = batches[i];
    }
    return compiler::for_any_batch(written, input_.name);
  }

  // By the choices of the first.
  Result<std::string> lowered(const Task& task, const compiler::OtherBatch& other) {
    NEREID_TRY(auto module, compiler::lower_module(task.trace, task.source, {.kernels = choices_}, other));
    if (plan_.empty()) {
      plan_ = module.plan;
      for (const auto& kernel : module.kernels) choices_[kernel.name] = kernel.choice;
    }
    const size_t begin = module.text.find(module.plan) + module.plan.size();
    return module.text.substr(module.text.find('\n', begin) + 1);
  }

  Result<bool> judge(int64_t batch) {
    NEREID_TRY(const auto task, at(batch));
    made_.judged.push_back({batch, evaluator_.judge(*task, "compiler", {.text = made_.source}, deadline_)});
    return made_.judged.back().judged.verified();
  }

  // About four times the batch, or twice where that verdict would take most of the time that is left: the
  // own one took `milliseconds`, and a verdict's time goes with the batch.
  int64_t larger_batch(double milliseconds) const {
    const int left = deadline_.poll_milliseconds();
    const int64_t times = left >= 0 && 4 * milliseconds > kShareOfLeft * left ? 2 : 4;
    return compiler::batches_around(times * input_.batch, sizes_of(task_.trace))[1];
  }

  Evaluator& evaluator_;
  const Task& task_;
  const compiler::Guard& guard_;
  const bool fallback_;
  const Deadline deadline_;
  BatchInput input_;
  std::string plan_;
  std::map<std::string, compiler::KernelChoice> choices_;
  DynamicBatch made_;
};

}  // namespace

Result<DynamicBatch> for_any_batch(Evaluator& evaluator, const Task& task, const compiler::Guard& guard,
                                   bool fallback, Deadline deadline) {
  return Writer(evaluator, task, guard, fallback, deadline).run();
}

}  // namespace nereid::search
