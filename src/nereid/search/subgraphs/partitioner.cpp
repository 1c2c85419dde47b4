#include "nereid/search/subgraphs/partitioner.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <set>
#include <unordered_set>

#include "nereid/render/canonicalize.h"
#include "nereid/render/idiomatic_torch.h"
#include "nereid/render/python_text.h"
#include "nereid/render/subgraph_source.h"
#include "nereid/trace/access.h"
#include "nereid/trace/op_class.h"

namespace nereid::search {
namespace {

using trace::ValueId;

constexpr size_t kMaxJoined = 8;  // steps that are one node, because one writes in place what another made

void add_once(std::vector<ValueId>& list, ValueId id) {
  if (std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
}

// What a normalisation keeps for another mode, where it goes by its own input.
void forget_running_statistics(trace::Call& call) {
  if ((call.op != "aten::batch_norm" && call.op != "aten::instance_norm") || call.args.size() < 6) return;
  const auto* by_input = std::get_if<bool>(&call.args[5].node);
  if (by_input != nullptr && *by_input) call.args[3].node = call.args[4].node = trace::None{};
}

}  // namespace

Result<Partitioner> Partitioner::cut(const Task& task) {
  Partitioner partitioner(task);
  NEREID_TRY_STATUS(partitioner.read());
  return partitioner;
}

const trace::Call& Partitioner::call(size_t step) const {
  return std::get<trace::Call>(forward_->steps[step]);
}

std::vector<bool> Partitioner::reaches_output() const {
  std::set<trace::StorageId> wanted;
  for (const ValueId id : trace::tensors_in(forward_->output)) wanted.insert(value(id).storage);
  std::vector<bool> reaches(forward_->steps.size(), false);
  for (bool more = true; more;) {  // what is read may have been written by a later step, in the call before
    more = false;
    for (size_t i = forward_->steps.size(); i-- > 0;) {
      if (reaches[i]) continue;
      auto made = trace::tensors_in(call(i).result);
      for (const ValueId id : trace::written_arguments(call(i))) made.push_back(id);
      if (std::ranges::none_of(made, [&](ValueId id) { return wanted.contains(value(id).storage); }))
        continue;
      reaches[i] = more = true;
      for (const ValueId id : render::read_by(call(i))) wanted.insert(value(id).storage);
    }
  }
  return reaches;
}

Status Partitioner::read() {
  const auto& trace = task_->trace;
  auto forward = std::make_shared<trace::Phase>(trace.phases[static_cast<size_t>(task_->facts.judged())]);
  for (auto& step : forward->steps) {
    auto* call = std::get_if<trace::Call>(&step);
    if (call == nullptr) return input_error("it launches kernels of its own");
    forget_running_statistics(*call);
  }
  forward_ = std::move(forward);
  const auto reaches = reaches_output();
  std::set<ValueId> known;  // a view that shows all of what it is of has that one's id
  for (size_t i = 0; i < forward_->steps.size(); ++i) {
    if (!reaches[i]) continue;
    const auto* call = std::get_if<trace::Call>(&forward_->steps[i]);
    for (const ValueId id : render::read_by(*call)) known.insert(id);
    const auto access = trace::access_of(trace, *call);
    if (access.random || access.seeds) return input_error("{} draws random numbers", call->op);
    if (const size_t length = render::composite_at(*forward_, i); length > 0) {
      nodes_.emplace_back();
      for (const size_t end = i + length; i < end; ++i) {
        node_of_[i] = nodes_.size() - 1, nodes_.back().push_back(i);
        for (const ValueId id : render::read_by(this->call(i))) known.insert(id);
        for (const ValueId id : trace::tensors_in(this->call(i).result)) maker_.emplace(value(id).storage, i);
      }
      --i;
      continue;
    }
    if (const auto written = trace::written_arguments(*call); !written.empty()) {
      NEREID_TRY_STATUS(join(i, written));
      continue;
    }
    if (trace::writes_nothing(trace, *call)) {
      for (const ValueId id : trace::tensors_in(call->result))
        if (known.insert(id).second) view_.emplace(id, i);
      continue;
    }
    for (const ValueId id : trace::tensors_in(call->result)) maker_.emplace(value(id).storage, i);
    node_of_[i] = nodes_.size();
    nodes_.push_back({i});
  }
  const size_t count = nodes_.size();
  if (count > kMaxNodes) return input_error("it has {} steps, more than {}", count, kMaxNodes);
  before_.resize(count), after_.resize(count), ancestors_.resize(count), descendants_.resize(count);
  for (size_t n = 0; n < count; ++n)
    for (const ValueId id : read_by_node(n))
      if (const auto made = maker_.find(value(id).storage); made != maker_.end()) {
        const size_t from = node_of_.at(made->second);
        if (from == n) continue;
        before_[n].set(from), after_[from].set(n);
        ancestors_[n] |= ancestors_[from];
        ancestors_[n].set(from);
      }
  for (size_t n = 0; n < count; ++n) each_node(ancestors_[n], [&](size_t a) { descendants_[a].set(n); });
  return ok_status();
}

// What writes in place, into what was made a few steps before, is one node with these.
Status Partitioner::join(size_t step, const std::vector<ValueId>& written) {
  size_t first = nodes_.size();
  for (const ValueId id : written) {
    const auto made = maker_.find(value(id).storage);
    if (made == maker_.end()) return input_error("{} writes in place", call(step).op);
    first = std::min(first, node_of_.at(made->second));
  }
  std::vector<size_t> joined;
  for (size_t n = first; n < nodes_.size(); ++n)
    joined.insert(joined.end(), nodes_[n].begin(), nodes_[n].end());
  joined.push_back(step);
  if (joined.size() > kMaxJoined)
    return input_error("{} writes in place what was made many steps before", call(step).op);
  for (const ValueId id : trace::tensors_in(call(step).result)) maker_.emplace(value(id).storage, step);
  for (const size_t each : joined) node_of_[each] = first;
  nodes_.resize(first);
  nodes_.push_back(std::move(joined));
  return ok_status();
}

std::vector<ValueId> Partitioner::read_by_node(size_t node) const {
  std::vector<ValueId> values;
  for (const size_t step : nodes_[node])
    for (const ValueId id : render::read_by(call(step))) values.push_back(id);
  return values;
}

Nodes Partitioner::all() const {
  Nodes set;
  for (size_t n = 0; n < nodes_.size(); ++n) set.set(n);
  return set;
}

bool Partitioner::convex(const Nodes& set) const {
  Nodes above, below;
  each_node(set, [&](size_t n) { above |= ancestors_[n], below |= descendants_[n]; });
  return (above & below & ~set).none();
}

std::optional<ValueId> Partitioner::same_place(const std::vector<ValueId>& values, ValueId id) const {
  const auto& v = value(id);
  for (const ValueId each : values) {
    const auto& other = value(each);
    if (other.storage == v.storage && other.sizes == v.sizes && other.strides == v.strides &&
        other.offset == v.offset)
      return each;
  }
  return std::nullopt;
}

bool Partitioner::may_follow(const Nodes& set, const Nodes& done) const {
  Nodes needed;
  each_node(set, [&](size_t n) { needed |= before_[n]; });
  return (needed & ~(set | done)).none();
}

size_t Partitioner::lines(const Nodes& set) const {
  std::set<std::pair<std::string, int>> places;
  each_node(set, [&](size_t n) {
    const auto& place = call(nodes_[n].front()).place;
    places.emplace(place.file, place.line);
  });
  return places.size();
}

bool Partitioner::computes(size_t node) const { return is_reserved(node, verify::Policy::kStrict); }

bool Partitioner::is_reserved(size_t node, verify::Policy policy) const {
  if (policy == verify::Policy::kHybrid) return false;
  const auto& steps = task_->facts.phases[static_cast<size_t>(task_->facts.judged())].steps;
  return std::any_of(nodes_[node].begin(), nodes_[node].end(), [&](size_t step) {
    const verify::Work work = steps[step].work;
    return policy == verify::Policy::kStrict ? work != verify::Work::kFree : work == verify::Work::kHeavy;
  });
}

std::vector<size_t> Partitioner::steps_of(const Nodes& set) const {
  std::set<size_t> steps;
  std::deque<ValueId> wanted;
  each_node(set, [&](size_t n) {
    steps.insert(nodes_[n].begin(), nodes_[n].end());
    for (const ValueId id : read_by_node(n)) wanted.push_back(id);
  });
  // What leaves the set as a view is made by its users.
  while (!wanted.empty()) {
    const ValueId id = wanted.front();
    wanted.pop_front();
    const auto view = view_.find(id);
    const auto made = maker_.find(value(id).storage);
    const bool inside = made != maker_.end() && set.test(node_of_.at(made->second));
    if (view == view_.end() || !inside || !steps.insert(view->second).second) continue;
    for (const ValueId before : render::read_by(call(view->second))) wanted.push_back(before);
  }
  return {steps.begin(), steps.end()};
}

// Inputs are declared contiguous. What is read as a view that is not is taken as a view in the subgraph.
std::vector<size_t> Partitioner::steps_with_views(const Nodes& set) const {
  const auto own = steps_of(set);
  std::set<size_t> steps(own.begin(), own.end());
  std::deque<size_t> readers(own.begin(), own.end());
  while (!readers.empty()) {
    for (const ValueId id : render::read_by(call(readers.front()))) {
      const auto view = view_.find(id);
      if (view == view_.end() || render::is_contiguous(value(id)) ||
          call(view->second).op == "aten::as_strided")
        continue;
      if (steps.insert(view->second).second) readers.push_back(view->second);
    }
    readers.pop_front();
  }
  return {steps.begin(), steps.end()};
}

Result<Subgraph> Partitioner::describe(const Nodes& set, SourceStyle style) const {
  Subgraph subgraph{.nodes = set};
  const auto steps = style.views ? steps_with_views(set) : steps_of(set);
  std::set<ValueId> made;
  for (const size_t step : steps)
    for (const ValueId id : trace::tensors_in(call(step).result)) made.insert(id);
  for (const size_t step : steps)
    for (const ValueId id : render::read_by(call(step)))
      if (!made.contains(id)) add_once(subgraph.inputs, id);
  // What others read, or forward returns: the storages of the set, as their makers gave them.
  std::set<trace::StorageId> wanted;
  for (size_t i = 0; i < forward_->steps.size(); ++i)
    if (node_of_.contains(i) && !std::binary_search(steps.begin(), steps.end(), i))
      for (const ValueId id : render::read_by(call(i))) wanted.insert(value(id).storage);
  for (const ValueId id : trace::tensors_in(forward_->output)) wanted.insert(value(id).storage);
  each_node(set, [&](size_t n) {
    for (const size_t step : nodes_[n])
      for (const ValueId id : trace::tensors_in(call(step).result))
        if (wanted.contains(value(id).storage) && !same_place(subgraph.outputs, id))
          add_once(subgraph.outputs, id);
  });
  if (subgraph.outputs.empty()) return input_error("it has no users");
  if (subgraph.inputs.empty()) return input_error("it has no inputs");

  std::optional<render::CanonicalSteps> canonical;
  if (style.canonical) {
    canonical = render::canonical_steps(task_->trace, *forward_, steps);
    // Named in the order in which they are read now, as the usual source has them.
    std::vector<ValueId> read;
    for (const size_t step : canonical->steps)
      for (const ValueId id : render::read_by(std::get<trace::Call>(canonical->forward.steps[step])))
        if (std::ranges::find(subgraph.inputs, id) != subgraph.inputs.end()) add_once(read, id);
    for (const ValueId id : subgraph.inputs) add_once(read, id);
    subgraph.inputs = std::move(read);
  }
  for (const ValueId id : subgraph.inputs)
    subgraph.sizes.push_back(value(id).sizes.empty() ? std::vector<int64_t>{1} : value(id).sizes);
  if (canonical) {
    auto inputs = subgraph.inputs;
    for (const auto& [id, number] : canonical->numbers)
      inputs.push_back(id),
          subgraph.numbers.emplace_back(canonical->trace.values[static_cast<size_t>(id)].sizes, number);
    NEREID_TRY(subgraph.source, render::subgraph_source(canonical->trace, canonical->forward,
                                                        canonical->steps, inputs, subgraph.outputs));
  } else if (auto plain = style.idiomatic ? render::idiomatic_torch(task_->trace, *forward_, steps,
                                                                    subgraph.inputs, subgraph.outputs)
                                          : std::nullopt) {
    subgraph.source = std::move(plain->source), subgraph.sizes = std::move(plain->sizes);
  } else {
    NEREID_TRY(subgraph.source,
               render::subgraph_source(task_->trace, *forward_, steps, subgraph.inputs, subgraph.outputs));
  }

  const Gpu gpu;
  const auto& facts = task_->facts.phases[static_cast<size_t>(task_->facts.judged())].steps;
  double bytes = 0;
  for (const auto* list : {&subgraph.inputs, &subgraph.outputs})
    for (const ValueId id : *list)
      bytes += static_cast<double>(trace::element_count(value(id)) * trace::element_bytes(value(id).dtype));
  double flops = 0;
  each_node(set, [&](size_t n) {
    for (const size_t number : nodes_[n]) {
      const auto& step = facts[number];
      flops += step.flops;
      subgraph.eager_ms +=
          (std::max(step.bytes / gpu.memory_bytes_per_second, step.flops / gpu.float32_contraction_flops) +
           gpu.launch_seconds) *
          1e3;
    }
  });
  subgraph.min_ms = (std::max(bytes / gpu.memory_bytes_per_second, flops / gpu.half_contraction_flops) +
                     gpu.launch_seconds) *
                    1e3;
  return subgraph;
}

std::vector<Subgraph> Partitioner::subgraphs(size_t max_nodes, size_t most) const {
  std::unordered_set<Nodes> seen;
  std::deque<Nodes> queue;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    Nodes one;
    one.set(n);
    seen.insert(one), queue.push_back(one);
  }
  // Grown by one neighbour at a time; a set on the way need not be convex for a larger one to be.
  std::vector<Subgraph> found;
  const size_t max_sets = most * 8;
  while (!queue.empty() && found.size() < most) {
    const Nodes set = queue.front();
    queue.pop_front();
    if (convex(set))
      if (auto subgraph = describe(set); subgraph.ok()) found.push_back(*std::move(subgraph));
    if (set.count() == max_nodes || seen.size() > max_sets) continue;
    Nodes next;
    each_node(set, [&](size_t n) { next |= before_[n] | after_[n]; });
    each_node(next & ~set, [&](size_t n) {
      Nodes larger = set;
      larger.set(n);
      if (seen.insert(larger).second) queue.push_back(larger);
    });
  }
  return found;
}

std::vector<Subgraph> Partitioner::lines_as_subgraphs(size_t max_nodes) const {
  std::map<std::pair<std::string, int>, Nodes> lines;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const auto& place = call(nodes_[n].front()).place;
    lines[{place.file, place.line}].set(n);
  }
  std::vector<Subgraph> found;
  for (auto& [place, rest] : lines)
    while (rest.any()) {
      Nodes set, grown;
      grown.set(rest._Find_first());
      while (grown != set) {
        set = grown;
        each_node(set, [&](size_t n) { grown |= (before_[n] | after_[n]) & rest; });
      }
      rest &= ~set;
      if (set.count() < 2 || set.count() > max_nodes || !convex(set)) continue;
      if (auto subgraph = describe(set); subgraph.ok()) found.push_back(*std::move(subgraph));
    }
  return found;
}

std::optional<Subgraph> Partitioner::whole() const {
  auto subgraph = describe(all());
  return subgraph.ok() ? std::optional(*std::move(subgraph)) : std::nullopt;
}

std::vector<Subgraph> Partitioner::alternative_sources(const Nodes& set) const {
  std::vector<Subgraph> found;
  std::set<std::string> sources;
  if (const auto usual = describe(set); usual.ok()) sources.insert(usual->source);
  for (const SourceStyle style :
       {SourceStyle{.canonical = true}, SourceStyle{.views = false, .canonical = true},
        SourceStyle{.views = false}, SourceStyle{.idiomatic = false},
        SourceStyle{.views = false, .idiomatic = false}})
    if (auto subgraph = describe(set, style); subgraph.ok() && sources.insert(subgraph->source).second)
      found.push_back(*std::move(subgraph));
  return found;
}

Subgraph Partitioner::alone(size_t node) const {
  Nodes set;
  set.set(node);
  auto subgraph = describe(set);
  if (subgraph.ok()) return *std::move(subgraph);
  Subgraph plain{.nodes = set};
  plain.eager_ms = Gpu{}.launch_seconds * 1e3;
  return plain;
}

}  // namespace nereid::search
