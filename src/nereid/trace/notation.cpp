#include "nereid/trace/notation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace nereid::trace {
namespace {

constexpr size_t kLongestText = 60;  // of one text argument

bool is_contiguous(const Value& value) {
  int64_t stride = 1;
  for (size_t d = value.sizes.size(); d-- > 0;) {
    if (value.sizes[d] == 0) return true;
    if (value.sizes[d] != 1 && value.strides[d] != stride) return false;
    stride *= value.sizes[d];
  }
  return true;
}

std::string float_text(double number) {
  std::string text = fmt::format("{:.6g}", number);
  if (text.find_first_not_of("-0123456789") == text.npos) text += ".0";
  return text;
}

template <typename Items, typename F>
std::string joined(const Items& items, F text_of) {
  std::string all;
  for (const auto& item : items) all += (all.empty() ? "" : ", ") + text_of(item);
  return all;
}

struct ArgText {
  const Trace& trace;
  std::string operator()(const None&) const { return "None"; }
  std::string operator()(bool flag) const { return flag ? "True" : "False"; }
  std::string operator()(int64_t number) const { return fmt::to_string(number); }
  std::string operator()(double number) const { return float_text(number); }
  std::string operator()(const std::complex<double>& number) const {
    return fmt::format("({}{}{}j)", float_text(number.real()), number.imag() < 0 ? "" : "+",
                       float_text(number.imag()));
  }
  std::string operator()(const Text& text) const {
    const std::string safe = safe_text(text.text);
    return safe.size() <= kLongestText ? "'" + safe + "'" : "'" + safe.substr(0, kLongestText) + "...'";
  }
  std::string operator()(const TensorRef& tensor) const { return value_text(trace, tensor.value); }
  std::string operator()(const Named& named) const { return safe_text(named.name); }
  std::string operator()(const List& list) const {
    const std::string inside = joined(list.items, [&](const Arg& item) { return arg_text(trace, item); });
    return list.tuple ? fmt::format("({}{})", inside, list.items.size() == 1 ? "," : "") : "[" + inside + "]";
  }
  std::string operator()(const Dict& dict) const {
    return "{" +
           joined(dict.items,
                  [&](const DictItem& item) {
                    return safe_text(item.first) + ": " + arg_text(trace, item.second);
                  }) +
           "}";
  }
  std::string operator()(const Opaque& opaque) const { return "<" + safe_text(opaque.type) + ">"; }
};

struct LaunchArgText {
  const Trace& trace;
  std::string operator()(const PointerArg& arg) const {
    if (arg.value < 0) return "null";
    const std::string value = value_text(trace, arg.value);
    return arg.offset == 0 ? value : fmt::format("{} +{} bytes", value, arg.offset);
  }
  std::string operator()(const IntArg& arg) const { return fmt::to_string(arg.value); }
  std::string operator()(const FloatArg& arg) const { return float_text(arg.value); }
  std::string operator()(const DescriptorArg& arg) const {
    return fmt::format("descriptor({}, block [{}])", value_text(trace, arg.value),
                       fmt::join(arg.block, ", "));
  }
};

// Length of the control character that UTF-8 text begins with: C0, C1 and the ones that turn the direction of
// writing; 0 where it begins with something harmless.
size_t control_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return 2;
  const bool turns =
      byte(0) == 0xe2 &&
      ((byte(1) == 0x80 && (byte(2) == 0x8e || byte(2) == 0x8f || (byte(2) >= 0xa8 && byte(2) <= 0xae))) ||
       (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9));
  return turns ? 3 : 0;
}

}  // namespace

std::string safe_text(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const size_t control = control_length(text);
    if (control == 0) {
      safe += text.front();
    } else {
      safe += text.front() == '\n' || text.front() == '\t' ? ' ' : '?';
    }
    text.remove_prefix(std::max<size_t>(control, 1));
  }
  return safe;
}

std::string_view torch_name(DType type) {
  switch (type) {
    case DType::kBool:
      return "bool";
    case DType::kU8:
      return "uint8";
    case DType::kI8:
      return "int8";
    case DType::kI16:
      return "int16";
    case DType::kU16:
      return "uint16";
    case DType::kI32:
      return "int32";
    case DType::kU32:
      return "uint32";
    case DType::kI64:
      return "int64";
    case DType::kU64:
      return "uint64";
    case DType::kF16:
      return "float16";
    case DType::kBF16:
      return "bfloat16";
    case DType::kF32:
      return "float32";
    case DType::kF64:
      return "float64";
    case DType::kF8E4M3FN:
      return "float8_e4m3fn";
    case DType::kF8E5M2:
      return "float8_e5m2";
    case DType::kF8E4M3FNUZ:
      return "float8_e4m3fnuz";
    case DType::kF8E5M2FNUZ:
      return "float8_e5m2fnuz";
    case DType::kF8E8M0FNU:
      return "float8_e8m0fnu";
    case DType::kC32:
      return "complex32";
    case DType::kC64:
      return "complex64";
    case DType::kC128:
      return "complex128";
  }
  return "";
}

std::string shape_text(const Value& value) {
  return fmt::format("{}[{}]", to_string(value.dtype), fmt::join(value.sizes, ", "));
}

std::string storage_text(const Trace& trace, StorageId id) {
  const Storage& storage = trace.storages[static_cast<size_t>(id)];
  switch (storage.role) {
    case Role::kInput:
      return "x" + safe_text(storage.name);
    case Role::kParameter:
    case Role::kBuffer:
      if (!storage.name.empty()) return safe_text(storage.name);
      return fmt::format("t{}", id);
    case Role::kConstant:
      return fmt::format("const{}", id);
    case Role::kTemporary:
      break;
  }
  return fmt::format("t{}", id);
}

std::string value_text(const Trace& trace, ValueId id) {
  const Value& value = trace.values[static_cast<size_t>(id)];
  std::string text = fmt::format("{}: {}", storage_text(trace, value.storage), shape_text(value));
  if (!is_contiguous(value)) text += fmt::format(" strides [{}]", fmt::join(value.strides, ", "));
  if (value.offset != 0) text += fmt::format(" +{}", value.offset);
  if (value.conj) text += " conj";
  if (value.neg) text += " neg";
  return text;
}

std::string arg_text(const Trace& trace, const Arg& arg) { return std::visit(ArgText{trace}, arg.node); }
std::string launch_arg_text(const Trace& trace, const LaunchArg& arg) {
  return std::visit(LaunchArgText{trace}, arg);
}

std::string call_text(const Trace& trace, const Call& call) {
  std::string arguments = joined(call.args, [&](const Arg& arg) { return arg_text(trace, arg); });
  for (const auto& [name, arg] : call.kwargs)
    arguments += (arguments.empty() ? "" : ", ") + safe_text(name) + "=" + arg_text(trace, arg);
  const std::string_view op = call.op;
  const std::string_view name = op.starts_with("aten::") ? op.substr(6) : op;
  std::string text = fmt::format("{}({})", name, arguments);
  if (!std::holds_alternative<None>(call.result.node)) text += " -> " + arg_text(trace, call.result);
  return text;
}

std::string launch_text(const Trace& trace, const Launch& launch) {
  const Alternative& first = launch.alternatives.front();
  const Kernel& kernel = trace.kernels[static_cast<size_t>(first.kernel)];
  return fmt::format("{}[{}]({})", safe_text(kernel.name), fmt::join(first.grid, ", "),
                     joined(first.args, [&](const LaunchArg& arg) { return launch_arg_text(trace, arg); }));
}

std::string_view phase_text(PhaseKind kind) {
  switch (kind) {
    case PhaseKind::kModule:
      return "module";
    case PhaseKind::kMakeInputs:
      return "make_inputs";
    case PhaseKind::kInit:
      return "init";
    case PhaseKind::kForward:
      return "forward";
  }
  return "?";
}

std::string quantity_text(double amount, std::string_view unit) {
  static constexpr std::string_view kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  while (amount >= 999.5 && prefix + 1 < std::size(kPrefixes)) amount /= 1000, ++prefix;
  if (prefix == 0) return fmt::format("{:.0f} {}", amount, unit);
  return fmt::format("{:.3g} {}{}", amount, kPrefixes[prefix], unit);
}

}  // namespace nereid::trace
