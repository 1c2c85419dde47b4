#include "nereid/replay/host/upcast.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

#include "nereid/trace/access.h"

namespace nereid::replay {
namespace {

using trace::DType;

std::optional<DType> upcast_dtype(DType type) {
  switch (type) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
      return DType::kF64;
    case DType::kC32:
    case DType::kC64:
      return DType::kC128;
    default:
      return std::nullopt;
  }
}

double from_f16(uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 31) return mantissa ? std::nan("") : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

double read_real(const char* data, int64_t bytes, bool bf16) {
  if (bytes == 4) {
    float value;
    std::memcpy(&value, data, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, data, 2);
  return bf16 ? std::bit_cast<float>(uint32_t{bits} << 16) : from_f16(bits);
}

std::string upcast_data(const std::string& data, DType type) {
  const bool complex = type == DType::kC32 || type == DType::kC64;
  const auto bytes = static_cast<size_t>(trace::element_bytes(type) / (complex ? 2 : 1));
  std::string out;
  for (size_t i = 0; i + bytes <= data.size(); i += bytes) {
    const double value = read_real(data.data() + i, static_cast<int64_t>(bytes), type == DType::kBF16);
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return out;
}

void upcast_dtypes(trace::Arg& arg) {
  if (auto* named = std::get_if<trace::Named>(&arg.node); named && named->kind == "dtype") {
    if (const auto type = trace::dtype_from_string(named->name); type && upcast_dtype(*type))
      named->name = trace::to_string(*upcast_dtype(*type));
  }
  if (auto* list = std::get_if<trace::List>(&arg.node))
    for (auto& item : list->items) upcast_dtypes(item);
}

std::string_view base_name(const trace::Call& call) {
  std::string_view name = call.op;
  name.remove_prefix(std::min(name.size(), name.find("::") == name.npos ? 0 : name.find("::") + 2));
  return name.substr(0, name.find('.'));
}

constexpr std::string_view kOrderSensitive[] = {"convolution",
                                                "_convolution",
                                                "conv1d",
                                                "conv2d",
                                                "conv3d",
                                                "conv_transpose1d",
                                                "conv_transpose2d",
                                                "conv_transpose3d",
                                                "conv_tbc",
                                                "mm",
                                                "addmm",
                                                "bmm",
                                                "baddbmm",
                                                "linear",
                                                "matmul",
                                                "mv",
                                                "addmv",
                                                "dot",
                                                "sum",
                                                "mean",
                                                "cumsum",
                                                "prod",
                                                "cumprod",
                                                "scaled_dot_product_attention",
                                                "std",
                                                "var",
                                                "linalg_vector_norm"};

bool concerns(const trace::Trace& trace, const trace::Call& call, const Tf32& tf32) {
  static constexpr std::string_view kConvolutions[] = {
      "convolution",      "_convolution",     "conv1d",   "conv2d", "conv3d", "conv_transpose1d",
      "conv_transpose2d", "conv_transpose3d", "conv_tbc", "lstm",   "gru",    "rnn_tanh",
      "rnn_relu"};
  static constexpr std::string_view kMatmuls[] = {"mm",
                                                  "addmm",
                                                  "bmm",
                                                  "baddbmm",
                                                  "linear",
                                                  "matmul",
                                                  "mv",
                                                  "addmv",
                                                  "dot",
                                                  "bilinear",
                                                  "_trilinear",
                                                  "einsum",
                                                  "addbmm",
                                                  "tensordot",
                                                  "chain_matmul",
                                                  "scaled_dot_product_attention",
                                                  "lstm_cell",
                                                  "gru_cell",
                                                  "rnn_tanh_cell",
                                                  "rnn_relu_cell"};
  const auto base = base_name(call);
  const bool concerned =
      (tf32.convolutions && std::ranges::find(kConvolutions, base) != std::end(kConvolutions)) ||
      (tf32.matmuls && std::ranges::find(kMatmuls, base) != std::end(kMatmuls));
  if (!concerned) return false;
  for (const auto& arg : call.args)
    for (const auto value : trace::tensors_in(arg))
      if (trace.values[value].dtype == DType::kF32) return true;
  return false;
}

trace::Phase* judged_phase(trace::Trace& trace) {
  trace::Phase* judged = nullptr;
  for (auto& phase : trace.phases)
    if (phase.kind == trace::PhaseKind::kForward) judged = &phase;
  return judged;
}

class Upcaster {
 public:
  Upcaster(const trace::Trace& trace, const Tf32& tf32) : own_(trace), tf32_(tf32) {}

  Result<Upcast> upcast() {
    out_.trace = own_;
    out_.was.resize(own_.storages.size());
    auto* judged = judged_phase(out_.trace);
    if (!judged) return input_error("it has no forward");
    for (auto& phase : out_.trace.phases)
      if (&phase != judged) phase.steps.clear();
    for (const auto& step : judged->steps)
      if (std::holds_alternative<trace::Launch>(step))
        return input_error("it launches Triton kernels itself");
    NEREID_TRY_STATUS(values());
    for (auto& step : judged->steps) call(std::get<trace::Call>(step));
    out_.trace.kernels.clear();
    return std::move(out_);
  }

 private:
  Status values() {
    std::vector<std::optional<DType>> seen(own_.storages.size());
    for (auto& value : out_.trace.values) {
      auto& first = seen[value.storage];
      const auto before = value.dtype;
      const auto growth = [](DType type) {
        return upcast_dtype(type) ? trace::element_bytes(*upcast_dtype(type)) / trace::element_bytes(type)
                                  : 1;
      };
      if (first && (growth(*first) != growth(before) ||
                    upcast_dtype(*first).has_value() != upcast_dtype(before).has_value()))
        return input_error("the same bytes are viewed as {} and as {}", trace::to_string(*first),
                           trace::to_string(before));
      if (!first) first = before;
      if (upcast_dtype(before)) value.dtype = *upcast_dtype(before);
    }
    for (size_t s = 0; s < seen.size(); ++s) {
      if (seen[s] == DType::kF64 || seen[s] == DType::kC128) out_.was[s] = seen[s];
      if (!seen[s] || !upcast_dtype(*seen[s])) continue;
      auto& storage = out_.trace.storages[s];
      storage.bytes =
          storage.bytes / trace::element_bytes(*seen[s]) * trace::element_bytes(*upcast_dtype(*seen[s]));
      if (!storage.data.empty()) storage.data = upcast_data(storage.data, *seen[s]);
      out_.was[s] = seen[s];
    }
    return ok_status();
  }

  void call(trace::Call& call) {
    const auto& own_tensors =
        call.args.empty() ? std::vector<trace::ValueId>() : trace::tensors_in(call.args[0]);
    if (trace::draws_random(call)) {
      if (own_tensors.empty()) return;  // randn and its kin draw in their own dtype; the result is converted
      const auto own = own_.values[own_tensors[0]].dtype;
      const auto base = base_name(call);
      if (base.ends_with("_like")) {
        for (const auto& [key, value] : call.kwargs)
          if (key == "dtype" && !std::holds_alternative<trace::None>(value.node)) return;
        std::erase_if(call.kwargs, [](const auto& kwarg) { return kwarg.first == "dtype"; });
        call.kwargs.emplace_back("dtype",
                                 trace::Arg{trace::Named{"dtype", std::string(trace::to_string(own))}});
        return;
      }
      if (base.ends_with("_") && upcast_dtype(own))
        call.op = fmt::format("nereid::draw_{} {}", trace::to_string(own), call.op);
      return;
    }
    if (concerns(own_, call, tf32_)) call.op = "nereid::tf32 " + call.op;
    if (base_name(call).starts_with("nan_to_num") && !own_tensors.empty())
      keep_largest(call, own_.values[own_tensors[0]].dtype);
    for (auto& arg : call.args) upcast_dtypes(arg);
    for (auto& [key, value] : call.kwargs) upcast_dtypes(value);
  }

  // An infinity becomes the largest number of the dtype that it had.
  static void keep_largest(trace::Call& call, DType own) {
    constexpr size_t kFirst = 2;
    constexpr std::string_view kNames[] = {"posinf", "neginf"};
    if (!upcast_dtype(own)) return;
    const double largest = own == DType::kF16 ? 65504 : own == DType::kBF16 ? 0x1.FEp127 : 0x1.FFFFFEp127;
    for (size_t i = 0; i < std::size(kNames); ++i) {
      const trace::Arg most{i == 0 ? largest : -largest};
      const auto named =
          std::ranges::find(call.kwargs, kNames[i], [](const auto& kwarg) { return kwarg.first; });
      auto* given = kFirst + i < call.args.size() ? &call.args[kFirst + i]
                    : named != call.kwargs.end()  ? &named->second
                                                  : nullptr;
      if (given == nullptr)
        call.kwargs.emplace_back(std::string(kNames[i]), most);
      else if (std::holds_alternative<trace::None>(given->node))
        *given = most;
    }
  }

  const trace::Trace& own_;
  const Tf32& tf32_;
  Upcast out_;
};

}  // namespace

Tf32 tf32_of(const trace::Trace& trace, bool allow) {
  const auto flag = [&](const char* name, bool otherwise) {
    const auto it = trace.flags.find(name);
    return it == trace.flags.end() ? otherwise : it->second != 0;
  };
  return {flag("cudnn.allow_tf32", true) || allow, flag("matmul.allow_tf32", false) || allow};
}

bool uses_tf32(const trace::Trace& trace, const Tf32& tf32) {
  const trace::Phase* judged = nullptr;
  for (const auto& phase : trace.phases)
    if (phase.kind == trace::PhaseKind::kForward) judged = &phase;
  if (!judged) return false;
  return std::ranges::any_of(judged->steps, [&](const auto& step) {
    const auto* call = std::get_if<trace::Call>(&step);
    return call && concerns(trace, *call, tf32);
  });
}

bool is_coarse(const trace::Trace& trace) {
  const auto coarse = [&](const trace::Arg& arg) {
    return std::ranges::any_of(trace::tensors_in(arg), [&](trace::ValueId value) {
      const auto type = trace.values[static_cast<size_t>(value)].dtype;
      return trace::is_floating(type) && trace::element_bytes(type) <= 2;
    });
  };
  for (const auto& phase : trace.phases)
    if (phase.kind == trace::PhaseKind::kForward)
      for (const auto& step : phase.steps)
        if (const auto* call = std::get_if<trace::Call>(&step); call && coarse(call->result)) return true;
  return false;
}

Result<Upcast> upcast(const trace::Trace& trace, const Tf32& tf32) { return Upcaster(trace, tf32).upcast(); }

bool mark_order_sensitive(Upcast& upcasted) {
  bool any = false;
  const auto narrow = [&](trace::ValueId value) {
    const auto was = upcasted.was[upcasted.trace.values[value].storage];
    return was && trace::is_floating(*was) && *was != DType::kF64;
  };
  for (auto& step : judged_phase(upcasted.trace)->steps) {
    auto* call = std::get_if<trace::Call>(&step);
    if (!call || std::ranges::find(kOrderSensitive, base_name(*call)) == std::end(kOrderSensitive)) continue;
    if (call->args.empty() || !std::ranges::any_of(trace::tensors_in(call->args[0]), narrow)) continue;
    call->op = "nereid::order_check " + call->op;
    any = true;
  }
  return any;
}

Upcast keep_dtypes(const trace::Trace& trace) {
  Upcast out{trace, std::vector<std::optional<DType>>(trace.storages.size()), true};
  auto* judged = judged_phase(out.trace);
  for (auto& phase : out.trace.phases)
    if (&phase != judged) phase.steps.clear();
  for (const auto& value : trace.values)
    if (trace::is_floating(value.dtype)) out.was[value.storage] = value.dtype;
  return out;
}

}  // namespace nereid::replay
