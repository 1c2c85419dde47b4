#include "nereid/dataset/whole_task_subgraph.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "nereid/render/subgraph_source.h"
#include "nereid/trace/access.h"

namespace nereid::dataset {
namespace {

using trace::ValueId;

trace::Arg references(const std::vector<ValueId>& values, bool tuple) {
  trace::List list{.items = {}, .tuple = tuple};
  for (const ValueId id : values) list.items.push_back({trace::TensorRef{id}});
  return {std::move(list)};
}

}  // namespace

Result<SubgraphTask> as_subgraph(const trace::Trace& trace) {
  const trace::Phase& forward = trace.phases.back();
  std::vector<ValueId> inputs, outputs;
  std::set<ValueId> made;
  std::set<trace::StorageId> given;
  for (const auto& step : forward.steps) {
    const auto* call = std::get_if<trace::Call>(&step);
    if (call == nullptr) return input_error("it launches kernels of its own");
    const auto access = trace::access_of(trace, *call);
    if (access.random || access.seeds) return input_error("{} draws random numbers", call->op);
    if (!trace::written_arguments(*call).empty()) return input_error("{} writes in place", call->op);
    for (const ValueId id : render::read_by(*call)) {
      if (made.contains(id) || std::ranges::find(inputs, id) != inputs.end()) continue;
      if (!given.insert(trace.values[static_cast<size_t>(id)].storage).second)
        return input_error("two inputs lie in the same memory");
      if (!render::is_contiguous(trace.values[static_cast<size_t>(id)]))
        return input_error("an input is not contiguous");
      if (trace.values[static_cast<size_t>(id)].sizes.empty())
        return input_error("an input has no dimensions");
      inputs.push_back(id);
    }
    for (const ValueId id : trace::tensors_in(call->result)) made.insert(id);
  }
  for (const ValueId id : trace::tensors_in(forward.output)) {
    if (!made.contains(id)) return input_error("an output is an input");
    if (std::ranges::find(outputs, id) == outputs.end()) outputs.push_back(id);
  }
  if (inputs.empty() || outputs.empty()) return input_error("it has no inputs, or no outputs");
  std::vector<size_t> steps(forward.steps.size());
  std::iota(steps.begin(), steps.end(), size_t{0});

  SubgraphTask task{.source = {}, .trace = trace};
  NEREID_TRY(task.source, render::subgraph_source(trace, forward, steps, inputs, outputs));
  trace::Phase only = forward;
  only.call = 0;
  only.inputs = references(inputs, false);
  only.output = outputs.size() == 1 ? trace::Arg{trace::TensorRef{outputs[0]}} : references(outputs, true);
  for (size_t s = 0; s < only.steps.size(); ++s)
    std::get<trace::Call>(only.steps[s]).place.line = render::kFirstStepLine + static_cast<int>(s);
  task.trace.phases = {std::move(only)};
  task.trace.state.clear();
  task.trace.init_inputs = references({}, false);
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto& storage =
        task.trace.storages[static_cast<size_t>(trace.values[static_cast<size_t>(inputs[i])].storage)];
    storage.role = trace::Role::kInput;
    storage.name = fmt::format("{}", i);
    storage.data.clear();
  }
  return task;
}

}  // namespace nereid::dataset
