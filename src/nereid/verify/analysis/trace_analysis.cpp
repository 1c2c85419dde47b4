#include "nereid/verify/analysis/trace_analysis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "nereid/trace/cost.h"
#include "nereid/trace/op_class.h"
#include "nereid/trace/op_table.h"
#include "nereid/verify/analysis/casts.h"
#include "nereid/verify/analysis/kernel_library.h"
#include "nereid/verify/analysis/launch_text.h"

namespace nereid::verify {
namespace {

using trace::StorageId;

std::vector<StorageId> storages_of(const std::vector<trace::Access>& accesses) {
  std::set<StorageId> found;
  for (const auto& access : accesses) found.insert(access.storage);
  return {found.begin(), found.end()};
}

// Every write leaves nothing of what its storage held.
bool overwrites(const trace::Trace& trace, const trace::StepAccess& access) {
  return !access.writes.empty() &&
         std::all_of(access.writes.begin(), access.writes.end(), [&](const trace::Access& write) {
           return write.covers && write.first == 0 &&
                  write.last == trace.storages[static_cast<size_t>(write.storage)].bytes;
         });
}

Work work_of(trace::OpClass c) {
  if (trace::is_free(c)) return Work::kFree;
  return trace::may_be_small(c) ? Work::kPointwise : Work::kHeavy;
}

// Positions of the arguments that say where, and not what: indices and masks.
std::vector<size_t> index_positions(std::string_view op) {
  struct Row {
    std::string_view names;
    std::vector<size_t> positions;
  };
  static const std::vector<Row> kRows = {
      {" index _unsafe_index index_put _index_put_impl _unsafe_index_put embedding take take_along_dim put "
       "masked_fill "
       "masked_scatter masked_select ",
       {1}},
      {" gather index_select scatter scatter_add scatter_reduce index_add index_copy index_fill "
       "index_reduce ",
       {2}},
      {" embedding_bag _embedding_bag _embedding_bag_forward_only ", {1, 2}}};
  const auto name = trace::split_name(op);
  if (name.name == "where") return {0};
  if (name.name == "repeat_interleave" && name.overload == "self_Tensor") return {1};
  for (const auto& row : kRows)
    if (row.names.find(fmt::format(" {} ", name.name)) != std::string_view::npos) return row.positions;
  return {};
}

class AnalysisMaker {
 public:
  AnalysisMaker(const trace::Trace& trace, KernelLibrary& library)
      : trace_(trace), library_(library), ops_(trace), seen_(trace.storages.size()) {}

  Result<TraceAnalysis> make() {
    TraceAnalysis facts;
    facts.trace = &trace_;
    for (const auto& kernel : trace_.kernels) {
      auto read = library_.read(kernel);
      facts.kernels.push_back(read.facts);
      kernels_.push_back(std::move(read));
    }
    for (size_t s = 0; s < trace_.storages.size(); ++s)
      facts.floating.push_back(!ops_.holds_integers_only(static_cast<StorageId>(s)));
    for (const auto& phase : trace_.phases) {
      PhaseAnalysis out{.kind = phase.kind, .call = phase.call};
      for (const auto& step : phase.steps) out.steps.push_back(analyze(step));
      for (const auto& step : in_order(out))
        for (const auto* list : {&step.facts->reads, &step.facts->writes})
          for (const StorageId s : *list) seen_[static_cast<size_t>(s)] = true;
      facts.phases.push_back(std::move(out));
    }
    return facts;
  }

 private:
  StepAnalysis analyze(const trace::Step& step) {
    if (const auto* launch = std::get_if<trace::Launch>(&step)) return of_launch(*launch);
    return of_call(std::get<trace::Call>(step));
  }

  StepAnalysis touching(const trace::StepAccess& access) const {
    StepAnalysis facts;
    facts.reads = storages_of(access.reads), facts.writes = storages_of(access.writes);
    for (const auto& write : access.writes)
      if (write.perhaps) facts.perhaps_writes.push_back(write.storage);
    facts.overwrites = overwrites(trace_, access);
    facts.random = access.random;
    return facts;
  }

  StepAnalysis of_launch(const trace::Launch& launch) {
    trace::Launch alone = launch;  // without what comes before it
    for (auto& alternative : alone.alternatives) alternative.before.clear();
    StepAnalysis facts = touching(trace::access_of(trace_, alone, uses()));
    const auto& alternative = launch.alternatives.front();
    const auto& kernel = trace_.kernels[static_cast<size_t>(alternative.kernel)];
    facts.name = kernel.name;
    facts.key = fmt::format("{} {} {}x{}x{}", kernel.name, kernel.hash, alternative.grid[0],
                            alternative.grid[1], alternative.grid[2]);
    facts.place = launch.place;
    facts.work = Work::kTriton;
    const auto& readable = kernels_[static_cast<size_t>(alternative.kernel)].kernel;
    facts.by_data = kernels_[static_cast<size_t>(alternative.kernel)].facts.moves_by_data;
    ttir::Cost cost;
    if (readable) {
      cost = launch_cost(trace_, alternative, *readable);
      facts.flops = cost.flops, facts.bytes = facts.max_bytes = cost.bytes_read + cost.bytes_written;
      if (!cost.unknown.empty()) facts.max_bytes = 0;
    }
    const double reachable = trace::bounded_cost(trace_, alone, uses()).bytes();
    if (facts.bytes == 0) facts.bytes = reachable;
    if (facts.max_bytes == 0) facts.max_bytes = reachable;
    facts.flops = std::max(facts.flops, facts.bytes / 4);  // at least one for each element that it touches
    add_data(alone, facts);
    add_numbers(alternative, facts);
    if (readable) {
      add_ranges(alternative, *readable, cost, facts);
      add_bytes_read(alternative, *readable, facts);
    }
    facts.before = before(launch);
    for (const auto& one : launch.alternatives) facts.same += launch_text(trace_, one);
    return facts;
  }

  // The calls before a launch, of all its configurations, one after the other. Only one configuration runs:
  // what a call writes is surely overwritten where every configuration does.
  std::vector<StepAnalysis> before(const trace::Launch& launch) {
    std::vector<StepAnalysis> all;
    std::map<std::vector<StorageId>, size_t> clearing;  // by what is overwritten: of how many configurations
    for (const auto& alternative : launch.alternatives) {
      std::set<std::vector<StorageId>> cleared;
      for (const auto& call : alternative.before) {
        all.push_back(of_call(call));
        if (all.back().overwrites) cleared.insert(all.back().writes);
      }
      for (const auto& writes : cleared) ++clearing[writes];
    }
    for (auto& step : all) {
      if (!step.overwrites || clearing[step.writes] == launch.alternatives.size()) continue;
      step.overwrites = false;
      for (auto& range : step.ranges) range.coverage = WrittenRange::Coverage::kPart;
    }
    return all;
  }

  // Storage of each parameter of the TTIR function; -1: it is no pointer.
  std::vector<StorageId> storages_of_parameters(const trace::Alternative& one) const {
    std::vector<StorageId> found;
    for (const auto& arg : one.args) {
      trace::ValueId value = -1;
      size_t more = 0;
      if (const auto* p = std::get_if<trace::PointerArg>(&arg)) value = p->value;
      if (const auto* d = std::get_if<trace::DescriptorArg>(&arg))
        value = d->value, more = 2 * d->shape.size();
      found.push_back(value < 0 ? -1 : trace_.values[static_cast<size_t>(value)].storage);
      found.resize(found.size() + more, -1);
    }
    return found;
  }

  void add_data(const trace::Launch& launch, StepAnalysis& facts) const {
    std::set<std::pair<StorageId, StorageId>> pairs;
    for (const auto& one : launch.alternatives) {
      const auto& read = kernels_[static_cast<size_t>(one.kernel)];
      if (!read.kernel) return;
      const auto storages = storages_of_parameters(one);
      const size_t count = std::min(storages.size(), read.paths.sources.size());
      for (size_t to = 0; to < count; ++to)
        for (size_t from = 0; from < count; ++from)
          if (storages[to] >= 0 && storages[from] >= 0 && read.paths.sources[to][from])
            pairs.emplace(storages[from], storages[to]);
    }
    facts.data.assign(pairs.begin(), pairs.end());
    facts.data_everywhere = false;
  }

  void add_numbers(const trace::Alternative& one, StepAnalysis& facts) const {
    const auto& kernel = trace_.kernels[static_cast<size_t>(one.kernel)];
    const auto& read = kernels_[static_cast<size_t>(one.kernel)];
    if (!read.kernel) return;
    size_t parameter = 0;
    for (const auto& arg : one.args) {
      const size_t at = parameter++;
      if (const auto* d = std::get_if<trace::DescriptorArg>(&arg)) parameter += 2 * d->shape.size();
      const auto* whole = std::get_if<trace::IntArg>(&arg);
      const auto* real = std::get_if<trace::FloatArg>(&arg);
      if (whole == nullptr && real == nullptr) continue;
      const bool stored = std::ranges::any_of(
          read.paths.sources, [&](const std::vector<bool>& from) { return at < from.size() && from[at]; });
      if (read.paths.repeats[at] && whole != nullptr)
        facts.counts.push_back({fmt::format("{}:{}", kernel.name, at), static_cast<double>(whole->value)});
      if (stored)
        facts.numbers.push_back({fmt::format("{}:{}", kernel.name, at),
                                 whole != nullptr ? static_cast<double>(whole->value) : real->value});
    }
    for (const auto& [name, text] : kernel.constants) {
      double number = 0;
      const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (failure != std::errc() || end != text.data() + text.size()) continue;
      const auto is = [&](double stored) {
        return stored == number || stored == static_cast<double>(static_cast<float>(number));
      };
      if (std::ranges::any_of(read.paths.constants, is))
        facts.numbers.push_back({fmt::format("{}:{}", kernel.name, name), number});
      if (std::ranges::any_of(read.paths.repeating_constants, is))
        facts.counts.push_back({fmt::format("{}:{}", kernel.name, name), number});
    }
    for (size_t d = 0; d < one.grid.size() && read.paths.counts_programs; ++d)
      facts.counts.push_back({fmt::format("{}:grid {}", kernel.name, d), static_cast<double>(one.grid[d])});
  }

  // Which bytes the launch writes. They are counted where the storage is older than the phase alone: of
  // others nothing can be left from before.
  void add_ranges(const trace::Alternative& one, const ttir::Kernel& kernel, const ttir::Cost& cost,
                  StepAnalysis& facts) const {
    using Coverage = WrittenRange::Coverage;
    const auto& read = kernels_[static_cast<size_t>(one.kernel)];
    double wanted = 0;
    std::vector<size_t> positions;  // of each range: in `args`
    bool counts = true;
    size_t parameter = 0;
    std::string scalars;
    for (const auto& arg : one.args)
      if (!std::holds_alternative<trace::PointerArg>(arg) &&
          !std::holds_alternative<trace::DescriptorArg>(arg))
        scalars += launch_argument_text(arg);
    for (size_t i = 0; i < one.args.size(); ++i) {
      const size_t at = parameter++;
      trace::ValueId id = -1;
      int64_t offset = 0;
      if (const auto* p = std::get_if<trace::PointerArg>(&one.args[i])) id = p->value, offset = p->offset;
      if (const auto* d = std::get_if<trace::DescriptorArg>(&one.args[i]))
        id = d->value, parameter += 2 * d->shape.size();
      if (id < 0 || at >= read.uses.size() || !read.uses[at].written) continue;
      const auto& value = trace_.values[static_cast<size_t>(id)];
      auto [first, last] = trace::byte_extent(value);
      first += std::max<int64_t>(0, std::min(offset, last - first));
      WrittenRange range{.storage = value.storage, .first = first, .last = last};
      const bool by_data = at >= read.paths.placed_by_data.size() || read.paths.placed_by_data[at];
      if (!by_data)
        range.place = fmt::format("{} {}{} {} {}+{}", trace_.kernels[static_cast<size_t>(one.kernel)].hash,
                                  fmt::join(one.grid, "x"), scalars, at, value.offset, offset);
      counts = counts && !by_data;
      wanted += static_cast<double>(last - first);
      facts.ranges.push_back(std::move(range));
      positions.push_back(i);
    }
    const auto covered = [](const ttir::Cost& count, double of) {
      const bool exact = count.unknown.empty() && count.error == 0;
      if (count.bytes_written == 0 && !exact) return Coverage::kUnknown;
      if (count.bytes_written >= (exact ? of : (1 - std::max(0.02, count.error)) * of)) return Coverage::kAll;
      return exact || count.bytes_written < of / 2 ? Coverage::kPart : Coverage::kUnknown;
    };
    for (size_t k = 0; k < facts.ranges.size(); ++k) {
      auto& range = facts.ranges[k];
      if (!seen_[static_cast<size_t>(range.storage)] || range.place.empty()) continue;
      if (counts && cost.bytes_written >= wanted) {
        range.coverage = Coverage::kAll;
        continue;
      }
      trace::Alternative only = one;  // with this pointer alone of those that it writes through
      for (const size_t other : positions) {
        if (other == positions[k]) continue;
        if (auto* p = std::get_if<trace::PointerArg>(&only.args[other])) p->value = -1;
        if (auto* d = std::get_if<trace::DescriptorArg>(&only.args[other])) d->value = -1;
      }
      const auto alone = positions.size() == 1 ? cost : launch_cost(trace_, only, kernel);
      range.bytes = alone.bytes_written;
      range.coverage = covered(alone, static_cast<double>(range.last - range.first));
    }
  }

  // How much of each older storage it reads: counted with the pointers to it alone.
  void add_bytes_read(const trace::Alternative& one, const ttir::Kernel& kernel, StepAnalysis& of) const {
    for (const StorageId storage : of.reads) {
      if (!seen_[static_cast<size_t>(storage)]) continue;
      const auto keep = [&](trace::ValueId& id) {
        if (id >= 0 && trace_.values[static_cast<size_t>(id)].storage != storage) id = -1;
      };
      trace::Alternative only = one;
      for (auto& arg : only.args) {
        if (auto* p = std::get_if<trace::PointerArg>(&arg)) keep(p->value);
        if (auto* d = std::get_if<trace::DescriptorArg>(&arg)) keep(d->value);
      }
      const auto alone = launch_cost(trace_, only, kernel);
      if (alone.unknown.empty() && alone.error == 0) of.bytes_read_by_storage[storage] = alone.bytes_read;
    }
  }

  trace::KernelUses uses() const {
    return [this](const trace::Kernel& kernel) {
      return kernels_[static_cast<size_t>(&kernel - trace_.kernels.data())].uses;
    };
  }

  std::string shapes_of(const trace::Arg& result) const {
    std::string text;
    for (const auto v : trace::tensors_in(result)) {
      const auto& value = trace_.values[static_cast<size_t>(v)];
      text += fmt::format("{}[{}]", trace::to_string(value.dtype), fmt::join(value.sizes, ","));
    }
    return text;
  }

  StepAnalysis of_call(const trace::Call& call) {
    const auto access = trace::access_of(trace_, call);
    StepAnalysis facts = touching(access);
    for (const auto& write : access.writes)
      facts.ranges.push_back(
          {.storage = write.storage,
           .first = write.first,
           .last = write.last,
           .coverage = write.covers ? WrittenRange::Coverage::kAll : WrittenRange::Coverage::kPart,
           .place = fmt::format("[{}, {})", write.first, write.last)});
    const auto c = ops_.classify(call);
    facts.name = call.op;
    facts.key = fmt::format("{} {}", call.op, shapes_of(call.result));
    facts.kind = trace::to_string(c);
    facts.place = call.place;
    facts.work = work_of(c);
    if (facts.work == Work::kFree && settles_sign(access))
      facts.work = Work::kPointwise, facts.kind = trace::to_string(trace::OpClass::kPointwise);
    facts.cast = cast_of(trace_, access);
    add_data(call, facts);
    add_numbers(call, c, facts);
    if (c == trace::OpClass::kBookkeeping) {
      const auto as_work = ops_.classify_as_work(call);
      facts.over_integers = work_of(as_work);
      facts.kind = trace::to_string(as_work);
      // A reduction of what depends on no data depends on no more than its size.
      const auto tensors =
          call.args.empty() ? std::vector<trace::ValueId>() : trace::tensors_in(call.args[0]);
      if (facts.over_integers == Work::kHeavy && !tensors.empty())
        facts.numbers.push_back(
            {fmt::format("{}:elements", call.op),
             static_cast<double>(trace::element_count(trace_.values[static_cast<size_t>(tensors[0])]))});
    }
    if (facts.work == Work::kFree && facts.over_integers == Work::kFree &&
        facts.cast == StepAnalysis::Cast::kNone)
      return facts;
    const auto cost = trace::cost_of(trace_, call);
    facts.flops = cost.flops, facts.bytes = cost.bytes();
    return facts;
  }

  static void add_numbers(const trace::Call& call, trace::OpClass c, StepAnalysis& facts) {
    const auto name = trace::split_name(call.op).name;
    const bool sizes = name == "arange" || name == "eye" || name == "tril_indices" || name == "triu_indices";
    const bool values =
        c == trace::OpClass::kFill || c == trace::OpClass::kPointwise || c == trace::OpClass::kBookkeeping;
    if (call.op == "nereid::constant" && !facts.writes.empty()) facts.constant = facts.writes.front();
    if (sizes || !values) return;
    const auto add = [&](std::string_view slot, const trace::Arg& arg) {
      if (const auto* whole = std::get_if<int64_t>(&arg.node))
        facts.numbers.push_back({fmt::format("{}:{}", call.op, slot), static_cast<double>(*whole)});
      if (const auto* real = std::get_if<double>(&arg.node))
        facts.numbers.push_back({fmt::format("{}:{}", call.op, slot), *real});
    };
    for (size_t i = 0; i < call.args.size(); ++i) add(std::to_string(i), call.args[i]);
    for (const auto& [key, arg] : call.kwargs) add(key, arg);
  }

  // A copy of a view that is negated or conjugated when it is read computes that.
  bool settles_sign(const trace::StepAccess& access) const {
    return !access.writes.empty() && std::ranges::any_of(access.reads, [&](const trace::Access& read) {
      const auto& value = trace_.values[static_cast<size_t>(read.value)];
      return value.neg || value.conj;
    });
  }

  // All that a call reads may be part of what it writes, but for its indices and masks.
  void add_data(const trace::Call& call, StepAnalysis& facts) const {
    const auto positions = index_positions(call.op);
    if (positions.empty()) return;
    std::set<StorageId> sources;
    for (size_t i = 0; i < call.args.size(); ++i)
      if (std::ranges::find(positions, i) == positions.end())
        for (const auto v : trace::tensors_in(call.args[i]))
          sources.insert(trace_.values[static_cast<size_t>(v)].storage);
    facts.data_everywhere = false;
    for (const StorageId from : facts.reads)
      if (sources.contains(from))
        for (const StorageId to : facts.writes) facts.data.emplace_back(from, to);
  }

  const trace::Trace& trace_;
  KernelLibrary& library_;
  const trace::OpFacts ops_;
  std::vector<bool> seen_;  // storages that earlier phases touched
  std::vector<ReadKernel> kernels_;
};

}  // namespace

Result<TraceAnalysis> analyze_trace(const trace::Trace& trace, KernelLibrary& library) {
  return AnalysisMaker(trace, library).make();
}

}  // namespace nereid::verify
