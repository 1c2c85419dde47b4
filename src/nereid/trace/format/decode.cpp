// The reader of docs/trace_format.md. The document is hostile: nothing in it is believed before it was
// checked, and the order of the sections (storages before values before steps) is the order in which ids
// become meaningful.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "nereid/base/json_field.h"
#include "nereid/trace/format/codec.h"
#include "nereid/trace/format/decode_steps.h"
#include "nereid/trace/format/decode_words.h"
#include "nereid/trace/limits.h"

namespace nereid::trace {
namespace {

constexpr size_t kMaxData = size_t{256} << 20;

constexpr Word<Role> kRoles[] = {{"temporary", Role::kTemporary},
                                 {"input", Role::kInput},
                                 {"parameter", Role::kParameter},
                                 {"buffer", Role::kBuffer},
                                 {"constant", Role::kConstant}};
constexpr Word<Device> kDevices[] = {{"cuda", Device::kCuda}, {"cpu", Device::kCpu}};
constexpr Word<PhaseKind> kPhases[] = {{"module", PhaseKind::kModule},
                                       {"make_inputs", PhaseKind::kMakeInputs},
                                       {"init", PhaseKind::kInit},
                                       {"forward", PhaseKind::kForward}};

class Decoder {
 public:
  Result<Trace> run(const Json& document) {
    const JsonField root(document, "trace");
    NEREID_TRY(const JsonField version, root.at("nereid_trace"));
    if (version.json() != 1) return version.expected("1, the version this program reads");
    NEREID_TRY(trace_.file, root.text_at("file", kMaxName));
    NEREID_TRY(trace_.class_name, root.text_at("class", kMaxName));
    NEREID_TRY(const auto draw, root.find("draw"));
    if (draw && !draw->json().is_number_unsigned() && !draw->integer(0).ok())
      return draw->expected("an unsigned integer");
    if (draw) trace_.draw = draw->json().get<uint64_t>();
    NEREID_TRY_STATUS(
        section(root, "storages", kMaxStorages, [&](const JsonField& f) { return storage(f); }));
    NEREID_TRY_STATUS(section(root, "values", kMaxValues, [&](const JsonField& f) { return value(f); }));
    NEREID_TRY_STATUS(section(root, "kernels", kMaxKernels, [&](const JsonField& f) { return kernel(f); }));
    NEREID_TRY_STATUS(
        section(root, "phases", 2 + 2 * kMaxCalls, [&](const JsonField& f) { return phase(f); }));
    NEREID_TRY_STATUS(phases_are_complete(root));
    NEREID_TRY_STATUS(section(root, "state", kMaxValues, [&](const JsonField& f) { return state(f); }));
    NEREID_TRY(trace_.init_inputs, steps_.arg_at(root, "init_inputs"));
    NEREID_TRY_STATUS(rest(root));
    return std::move(trace_);
  }

 private:
  static Status section(const JsonField& root, std::string_view name, size_t max_items,
                        const std::function<Status(const JsonField&)>& read) {
    NEREID_TRY(const JsonField items, root.at(name));
    return items.each(max_items, read);
  }

  Status storage(const JsonField& field) {
    Storage storage;
    NEREID_TRY(const JsonField bytes, field.at("bytes"));
    NEREID_TRY(storage.bytes, bytes.integer(0, kMaxStorageBytes));
    NEREID_TRY(const auto role, field.find("role"));
    if (role) {
      NEREID_TRY(storage.role, one_of(*role, kRoles));
    }
    NEREID_TRY(const auto device, field.find("device"));
    if (device) {
      NEREID_TRY(storage.device, one_of(*device, kDevices));
    }
    NEREID_TRY(storage.name, field.text_at("name", kMaxName));
    NEREID_TRY(storage.pinned, field.boolean_at("pinned", false));
    NEREID_TRY(const auto data, field.find("data"));
    if (data) {
      NEREID_TRY(const std::string text, data->text(kMaxData));
      auto decoded = base64_decode(text);
      if (!decoded.ok()) return data->expected("base64");
      if (static_cast<int64_t>(decoded->size()) != storage.bytes)
        return data->expected(
            fmt::format("the storage's {} bytes in base64 ({} came)", storage.bytes, decoded->size()));
      storage.data = *std::move(decoded);
    }
    const bool has_data = storage.bytes == 0 || !storage.data.empty();
    if (storage.role == Role::kConstant && !has_data) return field.expected("'data', which a constant has");
    if (storage.pinned && !has_data) return field.expected("'data', which a pinned storage has");
    trace_.storages.push_back(std::move(storage));
    return ok_status();
  }

  Status value(const JsonField& field) {
    Value value;
    NEREID_TRY(const JsonField storage, field.at("s"));
    NEREID_TRY(const int64_t id, storage.integer(0, static_cast<int64_t>(trace_.storages.size()) - 1));
    value.storage = static_cast<StorageId>(id);
    NEREID_TRY(const JsonField type, field.at("t"));
    NEREID_TRY(value.dtype, dtype(type));
    NEREID_TRY(const JsonField sizes, field.at("n"));
    NEREID_TRY(value.sizes, integers(sizes, kMaxDims, 0, kMaxElements));
    NEREID_TRY(const JsonField strides, field.at("d"));
    NEREID_TRY(value.strides, integers(strides, kMaxDims, 0, kMaxElements));
    NEREID_TRY(value.offset, field.integer_at("o", 0, 0, kMaxElements));
    NEREID_TRY(value.conj, field.boolean_at("conj", false));
    NEREID_TRY(value.neg, field.boolean_at("neg", false));
    NEREID_TRY_STATUS(check_inside_storage(field, value));
    trace_.values.push_back(std::move(value));
    return ok_status();
  }

  Status check_inside_storage(const JsonField& field, const Value& value) const {
    if (value.sizes.size() != value.strides.size())
      return input_error("{}: expected as many sizes as strides, got {} and {}", field.path(),
                         value.sizes.size(), value.strides.size());
    int64_t count = 1;
    for (const int64_t size : value.sizes)
      if (__builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count) || count > kMaxElements)
        return input_error("{}: expected at most {} elements, got sizes of more", field.path(), kMaxElements);
    if (std::find(value.sizes.begin(), value.sizes.end(), 0) != value.sizes.end()) return ok_status();
    int64_t last = value.offset, end = 0;
    bool overflow = false;
    for (size_t d = 0; d < value.sizes.size(); ++d) {
      int64_t reach = 0;
      overflow |= __builtin_mul_overflow(value.sizes[d] - 1, value.strides[d], &reach);
      overflow |= __builtin_add_overflow(last, reach, &last);
    }
    overflow |= __builtin_add_overflow(last, 1, &last) ||
                __builtin_mul_overflow(last, element_bytes(value.dtype), &end);
    const int64_t bytes = trace_.storages[static_cast<size_t>(value.storage)].bytes;
    if (overflow || end > bytes)
      return input_error(
          "{}: expected a view that ends within the {} bytes of storage {}, got one that ends at byte {}",
          field.path(), bytes, value.storage, overflow ? "2^63 or more" : fmt::to_string(end));
    return ok_status();
  }

  Status kernel(const JsonField& field) {
    Kernel kernel;
    NEREID_TRY(const JsonField name, field.at("name"));
    NEREID_TRY(kernel.name, name.text(kMaxName));
    NEREID_TRY(const JsonField ttir, field.at("ttir"));
    NEREID_TRY(kernel.ttir, ttir.text(kMaxTtirBytes));
    NEREID_TRY(kernel.source, field.text_at("source", kMaxTtirBytes));
    NEREID_TRY(kernel.place, place(field));
    NEREID_TRY(const auto options, field.find("options"));
    if (options) {
      NEREID_TRY_STATUS(
          options->each_member(256, [&](const std::string& key, const JsonField& option) -> Status {
            NEREID_TRY(kernel.options[key], option.integer_or_flag());
            return ok_status();
          }));
    }
    NEREID_TRY(const auto texts, field.find("text_options"));
    if (texts) {
      NEREID_TRY_STATUS(
          texts->each_member(256, [&](const std::string& key, const JsonField& option) -> Status {
            NEREID_TRY(kernel.text_options[key], option.text(kMaxText));
            return ok_status();
          }));
    }
    NEREID_TRY(const auto constants, field.find("constants"));
    if (constants) {
      NEREID_TRY_STATUS(constants->each(4096, [&](const JsonField& constant) -> Status {
        NEREID_TRY_STATUS(pair(constant, "[name, text]"));
        NEREID_TRY(std::string parameter, constant.item(0).text(kMaxName));
        NEREID_TRY(std::string text, constant.item(1).text(kMaxText));
        kernel.constants.emplace_back(std::move(parameter), std::move(text));
        return ok_status();
      }));
    }
    kernel.hash = kernel_hash(kernel);
    trace_.kernels.push_back(std::move(kernel));
    return ok_status();
  }

  Status phase(const JsonField& field) {
    Phase phase;
    NEREID_TRY(const JsonField kind, field.at("phase"));
    NEREID_TRY(phase.kind, one_of(kind, kPhases));
    NEREID_TRY(const int64_t number, field.integer_at("call", 0, 0, static_cast<int64_t>(kMaxCalls) - 1));
    phase.call = static_cast<int>(number);
    NEREID_TRY_STATUS(check_phase_order(field, phase));
    NEREID_TRY(const JsonField steps, field.at("steps"));
    NEREID_TRY_STATUS(steps.each(kMaxSteps - step_count_, [&](const JsonField& item) -> Status {
      NEREID_TRY(Step read, steps_.step(item));
      phase.steps.push_back(std::move(read));
      return ok_status();
    }));
    step_count_ += phase.steps.size();
    NEREID_TRY(phase.inputs, steps_.arg_at(field, "inputs"));
    NEREID_TRY(phase.output, steps_.arg_at(field, "output"));
    NEREID_TRY(const auto joined, field.find("joined"));
    NEREID_TRY(phase.joined, StepDecoder::clock(joined));
    trace_.phases.push_back(std::move(phase));
    return ok_status();
  }

  // module first, where there is one; init before any forward; make_inputs and forward of each call in turn.
  Status check_phase_order(const JsonField& field, const Phase& phase) const {
    bool init = false;
    int made = 0, ran = 0;
    for (const Phase& earlier : trace_.phases) {
      init |= earlier.kind == PhaseKind::kInit;
      made += earlier.kind == PhaseKind::kMakeInputs;
      ran += earlier.kind == PhaseKind::kForward;
    }
    bool fits = false;
    switch (phase.kind) {
      case PhaseKind::kModule:
        fits = trace_.phases.empty() && phase.call == 0;
        break;
      case PhaseKind::kInit:
        fits = !init && made == 0 && phase.call == 0;
        break;
      case PhaseKind::kMakeInputs:
        fits = made == ran && phase.call == made;
        break;
      case PhaseKind::kForward:
        fits = init && made == ran + 1 && phase.call == ran;
        break;
    }
    if (!fits)
      return field.expected(
          "the order module, init, then make_inputs and forward of calls 0, 1, 2 (this one is " +
          std::string(kPhases[static_cast<size_t>(phase.kind)].name) + " " + std::to_string(phase.call) +
          ")");
    return ok_status();
  }

  Status phases_are_complete(const JsonField& root) const {
    if (trace_.phases.empty() || trace_.phases.back().kind != PhaseKind::kForward)
      return input_error("{}.phases: expected the last to be a forward", root.path());
    return ok_status();
  }

  Status state(const JsonField& field) {
    State state;
    NEREID_TRY(const JsonField name, field.at("name"));
    NEREID_TRY(state.name, name.text(kMaxName));
    if (!names_.insert(state.name).second) return name.expected("a name that no other state has");
    NEREID_TRY(const JsonField value, field.at("value"));
    NEREID_TRY(state.value, steps_.value_id(value));
    NEREID_TRY(state.parameter, field.boolean_at("parameter", false));
    NEREID_TRY(state.persistent, field.boolean_at("persistent", true));
    trace_.state.push_back(std::move(state));
    return ok_status();
  }

  Status rest(const JsonField& root) {
    NEREID_TRY(const auto flags, root.find("flags"));
    if (flags) {
      NEREID_TRY_STATUS(
          flags->each_member(256, [&](const std::string& name, const JsonField& flag) -> Status {
            NEREID_TRY(trace_.flags[name], flag.integer_or_flag());
            return ok_status();
          }));
    }
    NEREID_TRY(const auto notes, root.find("notes"));
    if (notes) {
      NEREID_TRY_STATUS(notes->each(kMaxNotes, [&](const JsonField& note) -> Status {
        NEREID_TRY(std::string text, note.text(kMaxText));
        trace_.notes.push_back(std::move(text));
        return ok_status();
      }));
    }
    NEREID_TRY(const auto seconds, root.find("seconds"));
    if (seconds) {
      NEREID_TRY(trace_.seconds, seconds->number());
      if (!(trace_.seconds >= 0 && trace_.seconds < 1e9)) return seconds->expected("seconds");
    }
    return ok_status();
  }

  Trace trace_;
  const StepDecoder steps_{trace_};
  size_t step_count_ = 0;
  std::set<std::string> names_;  // of state
};

}  // namespace

Result<Trace> decode(const Json& document) { return Decoder().run(document); }

}  // namespace nereid::trace
