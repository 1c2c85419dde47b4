#include "nereid/ttir/inline_assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <unordered_map>

#include "nereid/ttir/float_formats.h"
#include "nereid/ttir/handlers.h"

namespace nereid::ttir {
namespace {

constexpr size_t kMostSteps = 4096;
constexpr size_t kMostRegisters = 1024;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(trimmed(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<PtxType> type_named(std::string_view name) {
  static const std::unordered_map<std::string_view, PtxType> types = {
      {"f32", {Elem::kF32, true, 1}},         {"f64", {Elem::kF64, true, 1}},
      {"f16", {Elem::kF16, true, 1}},         {"bf16", {Elem::kBF16, true, 1}},
      {"f16x2", {Elem::kF16, true, 2}},       {"bf16x2", {Elem::kBF16, true, 2}},
      {"e4m3x2", {Elem::kF8E4M3FN, true, 2}}, {"e5m2x2", {Elem::kF8E5M2, true, 2}},
      {"s8", {Elem::kI8, true, 1}},           {"s16", {Elem::kI16, true, 1}},
      {"s32", {Elem::kI32, true, 1}},         {"s64", {Elem::kI64, true, 1}},
      {"u8", {Elem::kI8, false, 1}},          {"u16", {Elem::kI16, false, 1}},
      {"u32", {Elem::kI32, false, 1}},        {"u64", {Elem::kI64, false, 1}},
      {"b8", {Elem::kI8, false, 1}},          {"b16", {Elem::kI16, false, 1}},
      {"b32", {Elem::kI32, false, 1}},        {"b64", {Elem::kI64, false, 1}},
      {"pred", {Elem::kI1, false, 1}}};
  const auto found = types.find(name);
  if (found == types.end()) return std::nullopt;
  return found->second;
}

uint64_t low_bits(uint64_t value, int bits) {
  return bits >= 64 ? value : value & ((uint64_t{1} << bits) - 1);
}
int64_t as_signed(uint64_t value, int bits) {
  return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

}  // namespace

// ---- reading
class PtxParser {
 public:
  Result<PtxProgram> parse(std::string_view assembly, std::string_view constraints) {
    if (!read_constraints(constraints)) return input_error("{}", error_);
    std::string text;
    for (size_t i = 0; i < assembly.size(); ++i) {
      if (assembly.substr(i).starts_with("//")) {
        while (i < assembly.size() && assembly[i] != '\n') ++i;
      } else if (assembly.substr(i).starts_with("/*")) {
        const size_t end = assembly.find("*/", i);
        if (end == std::string_view::npos) return input_error("a comment without an end");
        i = end + 1;
      } else {
        text += assembly[i];
      }
    }
    std::string_view rest = text;
    for (std::string_view statement : split(rest, ';')) {
      // Braces that open or close a block; those of a vector operand stand after an instruction's name.
      while (!statement.empty() && (statement.front() == '{' || statement.front() == '}'))
        statement = trimmed(statement.substr(1));
      if (statement.empty()) continue;
      if (!read_statement(statement)) return input_error("{}", error_);
    }
    return std::move(program_);
  }

 private:
  bool fail(std::string message) {
    if (error_.empty()) error_ = std::move(message);
    return false;
  }
  int new_register(uint64_t initial = 0) {
    program_.initial_.push_back(initial);
    return static_cast<int>(program_.initial_.size()) - 1;
  }

  // "=f,r,r": results first. Clobbers, memory and ties are not for elementwise code.
  bool read_constraints(std::string_view constraints) {
    for (std::string_view part : split(constraints, ',')) {
      const bool is_result = part.starts_with('=');
      if (is_result) part.remove_prefix(part.starts_with("=&") ? 2 : 1);
      if (part.size() != 1 || std::string_view("rfhldc").find(part[0]) == std::string_view::npos)
        return fail(fmt::format("the constraint \"{}\"", part));
      if (is_result && program_.operands_ > 0) return fail("a result's constraint after an operand's");
      ++(is_result ? program_.results_ : program_.operands_);
      new_register();
    }
    if (program_.initial_.size() > 64) return fail("more than 64 operands");
    return true;
  }

  bool read_statement(std::string_view statement) {
    if (program_.steps_.size() >= kMostSteps || program_.initial_.size() >= kMostRegisters)
      return fail("so long a text");
    if (statement[0] == '@') return fail(fmt::format("the predicate of \"{}\"", statement));
    const size_t space = std::min(statement.find_first_of(" \t\n"), statement.size());
    const std::string_view name = statement.substr(0, space), rest = trimmed(statement.substr(space));
    if (name == ".reg") return read_declaration(rest);
    step_ = PtxStep{};
    if (!read_instruction(name)) return fail(fmt::format("the instruction {}", name));
    if (!read_operands(rest)) return fail(fmt::format("the operands of \"{}\"", statement));
    if (!fits()) return fail(fmt::format("so many operands in \"{}\"", statement));
    program_.steps_.push_back(step_);
    return true;
  }

  bool read_declaration(std::string_view text) {  // ".f32 a, b"
    const size_t space = std::min(text.find_first_of(" \t\n"), text.size());
    if (!text.starts_with('.') || !type_named(text.substr(1, space - 1)))
      return fail(fmt::format("the declaration \".reg {}\"", text));
    for (std::string_view name : split(text.substr(space), ',')) {
      if (const size_t angle = name.find('<'); angle != std::string_view::npos) {  // t<4>: t0 to t3
        int count = 0;
        for (char c : name.substr(angle + 1)) {
          if (c < '0' || c > '9') break;
          count = std::min(count * 10 + (c - '0'), 1000);
        }
        for (int k = 0; k < count; ++k)
          names_[fmt::format("{}{}", name.substr(0, angle), k)] = new_register();
      } else {
        names_[std::string(name)] = new_register();
      }
      if (program_.initial_.size() >= kMostRegisters) return fail("so many registers");
    }
    return true;
  }

  // The dotted name: the instruction, its modifiers, its types.
  bool read_instruction(std::string_view text) {
    auto parts = split(text, '.');
    const std::string_view name = parts[0];
    std::vector<PtxType> types;
    std::vector<std::string_view> modifiers;
    for (size_t k = 1; k < parts.size(); ++k) {
      if (const auto type = type_named(parts[k]))
        types.push_back(*type);
      else
        modifiers.push_back(parts[k]);
    }
    if (types.empty()) return false;
    step_.type = types[0];
    step_.from = types.size() > 1 ? types[1] : types[0];
    if (types.size() > (name == "cvt" || name == "slct" ? 2u : 1u)) return false;
    const bool floats = is_float(step_.type.elem);
    bool nan = false;
    char half = 0;
    for (const std::string_view m : modifiers) {
      if (m == "ftz")
        step_.flush = true;
      else if (m == "sat" || m == "satfinite")
        step_.saturate = true;
      else if (m == "rn" || m == "approx" || m == "full")
        continue;
      else if (name == "cvt" && (m == "rz" || m == "rni" || m == "rzi" || m == "rmi" || m == "rpi"))
        step_.rounding = m.size() == 2 ? 'z' : static_cast<char>(std::toupper(m[1]));
      else if (m == "NaN")
        nan = true;
      else if (m == "lo" || m == "hi" || m == "wide")
        half = m[0];
      else if (name == "shf" && (m == "l" || m == "r"))
        half = m[0];
      else if (name == "shf" && (m == "wrap" || m == "clamp"))
        step_.wrap = m == "wrap";
      else if (name == "setp" && step_.compare == Predicate::kInvalid)
        step_.compare = comparison(m, step_.type);
      else
        return false;
    }
    if (name == "setp" && step_.compare == Predicate::kInvalid) return false;
    if (name == "cvt") {
      step_.op = PtxOp::kCvt;
      return true;
    }
    const auto op = operation(name, floats, nan, half);
    if (!op) return false;
    step_.op = *op;
    if (*op == PtxOp::kSlct && (is_float(step_.from.elem) || step_.from.elem == Elem::kI32) == false)
      return false;
    return true;
  }

  static Predicate comparison(std::string_view m, const PtxType& type) {
    static const std::unordered_map<std::string_view, std::string_view> floats = {
        {"eq", "oeq"},  {"ne", "one"},  {"lt", "olt"},  {"le", "ole"},  {"gt", "ogt"},
        {"ge", "oge"},  {"equ", "ueq"}, {"neu", "une"}, {"ltu", "ult"}, {"leu", "ule"},
        {"gtu", "ugt"}, {"geu", "uge"}, {"num", "ord"}, {"nan", "uno"}};
    if (is_float(type.elem)) {
      const auto found = floats.find(m);
      return found == floats.end() ? Predicate::kInvalid : predicate_named(found->second, true);
    }
    if (m == "eq" || m == "ne") return predicate_named(m, false);
    if (m == "lo" || m == "ls" || m == "hi" || m == "hs")
      return predicate_named(m == "lo" ? "ult" : m == "ls" ? "ule" : m == "hi" ? "ugt" : "uge", false);
    return predicate_named((type.is_signed ? "s" : "u") + std::string(m), false);
  }

  static std::optional<PtxOp> operation(std::string_view name, bool floats, bool nan, char half) {
    if (name == "mul" && !floats)
      return half == 'l'   ? PtxOp::kMulLo
             : half == 'h' ? PtxOp::kMulHi
             : half == 'w' ? std::optional(PtxOp::kMulWide)
                           : std::nullopt;
    if (name == "mad" && !floats)
      return half == 'l'   ? PtxOp::kMadLo
             : half == 'h' ? PtxOp::kMadHi
             : half == 'w' ? std::optional(PtxOp::kMadWide)
                           : std::nullopt;
    if (name == "shf") return half == 'l' ? PtxOp::kShfLeft : PtxOp::kShfRight;
    if (half != 0) return std::nullopt;
    if (name == "max") return nan ? PtxOp::kMaxNan : PtxOp::kMax;
    if (name == "min") return nan ? PtxOp::kMinNan : PtxOp::kMin;
    if (nan) return std::nullopt;
    static const std::unordered_map<std::string_view, PtxOp> both = {
        {"abs", PtxOp::kAbs},   {"add", PtxOp::kAdd},   {"sub", PtxOp::kSub},
        {"neg", PtxOp::kNeg},   {"mov", PtxOp::kMov},   {"div", PtxOp::kDiv},
        {"selp", PtxOp::kSelp}, {"slct", PtxOp::kSlct}, {"setp", PtxOp::kSetp}};
    static const std::unordered_map<std::string_view, PtxOp> on_floats = {
        {"copysign", PtxOp::kCopysign}, {"cos", PtxOp::kCos}, {"ex2", PtxOp::kEx2},   {"fma", PtxOp::kFma},
        {"mad", PtxOp::kFma},           {"lg2", PtxOp::kLg2}, {"mul", PtxOp::kMulLo}, {"rcp", PtxOp::kRcp},
        {"rsqrt", PtxOp::kRsqrt},       {"sin", PtxOp::kSin}, {"sqrt", PtxOp::kSqrt}, {"tanh", PtxOp::kTanh}};
    static const std::unordered_map<std::string_view, PtxOp> on_integers = {
        {"and", PtxOp::kAnd},   {"bfe", PtxOp::kBfe},   {"bfi", PtxOp::kBfi}, {"brev", PtxOp::kBrev},
        {"clz", PtxOp::kClz},   {"lop3", PtxOp::kLop3}, {"not", PtxOp::kNot}, {"or", PtxOp::kOr},
        {"popc", PtxOp::kPopc}, {"prmt", PtxOp::kPrmt}, {"shl", PtxOp::kShl}, {"shr", PtxOp::kShr},
        {"xor", PtxOp::kXor}};
    for (const auto* table : {&both, floats ? &on_floats : &on_integers})
      if (const auto found = table->find(name); found != table->end()) return found->second;
    return std::nullopt;
  }

  // The first operand is written, the others are read; {a, b} is a register in halves, in a mov.
  bool read_operands(std::string_view text) {
    bool first = true;
    while (!text.empty()) {
      if (text[0] == '{') {
        const size_t end = text.find('}');
        if (end == std::string_view::npos || step_.op != PtxOp::kMov) return false;
        for (std::string_view part : split(text.substr(1, end - 1), ','))
          if (!read_operand(part, first)) return false;
        step_.op = first ? PtxOp::kUnpack : PtxOp::kPack;
        text = trimmed(text.substr(end + 1));
      } else {
        const size_t end = std::min(text.find(','), text.size());
        if (!read_operand(trimmed(text.substr(0, end)), first)) return false;
        text = text.substr(end);
      }
      first = false;
      if (text.empty()) break;
      if (text[0] != ',') return false;
      text = trimmed(text.substr(1));
      if (text.empty()) return false;
    }
    return !step_.out.empty();
  }

  bool read_operand(std::string_view text, bool written) {
    if (text.empty()) return false;
    if (written) {
      const auto found = register_named(text);
      if (found < 0) return false;
      step_.out.push_back(found);
      return true;
    }
    int place = register_named(text);
    if (place < 0) {
      const auto value = immediate(text);
      if (!value) return false;
      place = new_register(*value);
    }
    step_.in.push_back(place);
    return true;
  }

  int register_named(std::string_view text) const {
    if (text[0] == '$') {
      size_t number = 0;
      for (char c : text.substr(1)) {
        if (c < '0' || c > '9' || number > 100) return -1;
        number = number * 10 + static_cast<size_t>(c - '0');
      }
      const auto known = static_cast<size_t>(program_.results_ + program_.operands_);
      return text.size() > 1 && number < known ? static_cast<int>(number) : -1;
    }
    const auto found = names_.find(std::string(text));
    return found == names_.end() ? -1 : found->second;
  }

  // 12, -3, 0x1f, 0f3F800000, 0d3FF0000000000000, 1.5
  std::optional<uint64_t> immediate(std::string_view text) const {
    const std::string word(text);
    const Elem elem = step_.op == PtxOp::kCvt || step_.op == PtxOp::kSetp ? step_.from.elem : step_.type.elem;
    char* end = nullptr;
    if (word.size() > 2 && word[0] == '0' &&
        std::string_view("fFdD").find(word[1]) != std::string_view::npos) {
      const uint64_t bits = std::strtoull(word.c_str() + 2, &end, 16);
      if (*end != 0) return std::nullopt;
      const bool is_double = word[1] == 'd' || word[1] == 'D';
      if (elem == Elem::kF64 && !is_double)
        return std::bit_cast<uint64_t>(
            static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
      if (elem != Elem::kF64 && is_double) return from_double(std::bit_cast<double>(bits), elem);
      return bits;
    }
    if (word.find_first_of(".eE") != std::string::npos && !word.starts_with("0x")) {
      const double value = std::strtod(word.c_str(), &end);
      if (*end != 0 || !is_float(elem)) return std::nullopt;
      return from_double(value, elem);
    }
    const int64_t value = word[0] == '-' ? std::strtoll(word.c_str(), &end, 0)
                                         : static_cast<int64_t>(std::strtoull(word.c_str(), &end, 0));
    if (end == word.c_str() || (*end != 0 && std::string_view(end) != "U")) return std::nullopt;
    if (is_float(elem)) return std::nullopt;
    return static_cast<uint64_t>(value);
  }

  bool fits() {
    size_t wanted = 2;
    switch (step_.op) {
      case PtxOp::kAbs:
      case PtxOp::kBrev:
      case PtxOp::kClz:
      case PtxOp::kCos:
      case PtxOp::kEx2:
      case PtxOp::kLg2:
      case PtxOp::kMov:
      case PtxOp::kNeg:
      case PtxOp::kNot:
      case PtxOp::kPopc:
      case PtxOp::kRcp:
      case PtxOp::kRsqrt:
      case PtxOp::kSin:
      case PtxOp::kSqrt:
      case PtxOp::kTanh:
      case PtxOp::kUnpack:
        wanted = 1;
        break;
      case PtxOp::kBfe:
      case PtxOp::kFma:
      case PtxOp::kMadHi:
      case PtxOp::kMadLo:
      case PtxOp::kMadWide:
      case PtxOp::kPrmt:
      case PtxOp::kSelp:
      case PtxOp::kShfLeft:
      case PtxOp::kShfRight:
      case PtxOp::kSlct:
        wanted = 3;
        break;
      case PtxOp::kBfi:
      case PtxOp::kLop3:
        wanted = 4;
        break;
      case PtxOp::kCvt:
        if (step_.type.halves == 2 && step_.from.halves == 1) step_.op = PtxOp::kCvtPack;
        wanted = step_.op == PtxOp::kCvtPack ? 2 : 1;
        if (step_.type.halves < step_.from.halves) return false;
        break;
      default:
        break;
    }
    const bool unpacks = step_.op == PtxOp::kUnpack;
    if (unpacks || step_.op == PtxOp::kPack) {
      if (step_.type.elem != Elem::kI32 && step_.type.elem != Elem::kI64) return false;
    }
    return step_.in.size() == wanted && step_.out.size() == (unpacks ? 2u : 1u);
  }

  PtxProgram program_;
  PtxStep step_;
  std::unordered_map<std::string, int> names_;
  std::string error_;
};

Result<PtxProgram> PtxProgram::parse(std::string_view assembly, std::string_view constraints) {
  return PtxParser().parse(assembly, constraints);
}

// ---- running
namespace {

double flushed(double v, const PtxStep& step) {
  return step.flush && std::abs(v) < 0x1p-126 ? std::copysign(0.0, v) : v;
}

double float_result(const PtxStep& step, double a, double b, double c) {
  switch (step.op) {
    case PtxOp::kAbs:
      return std::abs(a);
    case PtxOp::kNeg:
      return -a;
    case PtxOp::kAdd:
      return a + b;
    case PtxOp::kSub:
      return a - b;
    case PtxOp::kMulLo:
      return a * b;
    case PtxOp::kDiv:
      return a / b;
    case PtxOp::kFma:
      return step.type.elem == Elem::kF32
                 ? static_cast<double>(
                       std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)))
                 : std::fma(a, b, c);
    case PtxOp::kMax:
      return std::fmax(a, b);
    case PtxOp::kMin:
      return std::fmin(a, b);
    case PtxOp::kMaxNan:
      return std::isnan(a) ? a : std::isnan(b) ? b : std::fmax(a, b);
    case PtxOp::kMinNan:
      return std::isnan(a) ? a : std::isnan(b) ? b : std::fmin(a, b);
    case PtxOp::kCopysign:
      return std::copysign(b, a);  // the first operand's sign
    case PtxOp::kCos:
      return std::cos(a);
    case PtxOp::kSin:
      return std::sin(a);
    case PtxOp::kEx2:
      return std::exp2(a);
    case PtxOp::kLg2:
      return std::log2(a);
    case PtxOp::kRcp:
      return 1 / a;
    case PtxOp::kRsqrt:
      return 1 / std::sqrt(a);
    case PtxOp::kSqrt:
      return std::sqrt(a);
    case PtxOp::kTanh:
      return std::tanh(a);
    default:
      return a;
  }
}

uint64_t permuted(uint64_t a, uint64_t b, uint64_t selector) {
  const uint64_t bytes = low_bits(b, 32) << 32 | low_bits(a, 32);
  uint64_t r = 0;
  for (int k = 0; k < 4; ++k) {
    const uint64_t pick = selector >> (4 * k) & 15;
    uint64_t byte = bytes >> (8 * (pick & 7)) & 255;
    if (pick & 8) byte = byte & 128 ? 255 : 0;
    r |= byte << (8 * k);
  }
  return r;
}

uint64_t reversed_bits(uint64_t a, int bits) {
  uint64_t r = 0;
  for (int k = 0; k < bits; ++k) r |= (a >> k & 1) << (bits - 1 - k);
  return r;
}

uint64_t shifted_right(uint64_t a, uint64_t by, int bits, bool is_signed) {
  if (by >= static_cast<uint64_t>(bits)) return is_signed && as_signed(a, bits) < 0 ? ~uint64_t{0} : 0;
  return is_signed ? static_cast<uint64_t>(as_signed(a, bits) >> by) : a >> by;
}

uint64_t bit_field(uint64_t a, uint64_t position, uint64_t length, int bits, bool is_signed) {
  position &= 255, length &= 255;
  const auto width = static_cast<uint64_t>(bits);
  uint64_t r = 0;
  const uint64_t top = std::min(position + length, width) - 1;
  const uint64_t sign = is_signed && length != 0 ? a >> std::min(top, width - 1) & 1 : 0;
  for (uint64_t k = 0; k < width; ++k)
    r |= (k < length && position + k < width ? a >> (position + k) & 1 : sign) << k;
  return r;
}

uint64_t upper_half(uint64_t a, uint64_t b, int bits, bool is_signed) {
  if (is_signed)
    return static_cast<uint64_t>((static_cast<__int128>(as_signed(a, bits)) * as_signed(b, bits)) >> bits);
  return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> bits);
}

uint64_t wide_product(uint64_t a, uint64_t b, int bits, bool is_signed) {
  return is_signed ? static_cast<uint64_t>(as_signed(a, bits)) * static_cast<uint64_t>(as_signed(b, bits))
                   : a * b;
}

uint64_t quotient(uint64_t a, uint64_t b, int bits, bool is_signed) {
  if (b == 0) return ~uint64_t{0};
  if (!is_signed) return a / b;
  const int64_t y = as_signed(b, bits);
  return y == -1 ? uint64_t{0} - a : static_cast<uint64_t>(as_signed(a, bits) / y);
}

uint64_t integer_result(const PtxStep& step, const uint64_t* v) {
  const int bits = elem_bits(step.type.elem);
  const bool sign = step.type.is_signed;
  const uint64_t a = v[0], b = v[1], c = v[2];
  const bool less = sign ? as_signed(a, bits) < as_signed(b, bits) : a < b;
  switch (step.op) {
    case PtxOp::kAbs:
      return as_signed(a, bits) < 0 ? uint64_t{0} - a : a;
    case PtxOp::kNeg:
      return uint64_t{0} - a;
    case PtxOp::kAdd:
      return a + b;
    case PtxOp::kSub:
      return a - b;
    case PtxOp::kMulLo:
      return a * b;
    case PtxOp::kMulHi:
      return upper_half(a, b, bits, sign);
    case PtxOp::kMulWide:
      return wide_product(a, b, bits, sign);
    case PtxOp::kMadLo:
      return a * b + c;
    case PtxOp::kMadHi:
      return upper_half(a, b, bits, sign) + c;
    case PtxOp::kMadWide:
      return wide_product(a, b, bits, sign) + c;
    case PtxOp::kDiv:
      return quotient(a, b, bits, sign);
    case PtxOp::kMax:
      return less ? b : a;
    case PtxOp::kMin:
      return less ? a : b;
    case PtxOp::kAnd:
      return a & b;
    case PtxOp::kOr:
      return a | b;
    case PtxOp::kXor:
      return a ^ b;
    case PtxOp::kNot:
      return step.type.elem == Elem::kI1 ? a ^ 1 : ~a;
    case PtxOp::kShl:
      return b >= static_cast<uint64_t>(bits) ? 0 : a << b;
    case PtxOp::kShr:
      return shifted_right(a, b, bits, sign);
    case PtxOp::kShfLeft:
    case PtxOp::kShfRight: {
      const uint64_t by = step.wrap ? c & 31 : std::min<uint64_t>(c, 32);
      const uint64_t both = b << 32 | a;
      return step.op == PtxOp::kShfRight ? both >> by : by == 0 ? b : both << by >> 32;
    }
    case PtxOp::kBrev:
      return reversed_bits(a, bits);
    case PtxOp::kClz:
      return static_cast<uint64_t>(std::countl_zero(a) - (64 - bits));
    case PtxOp::kPopc:
      return static_cast<uint64_t>(std::popcount(a));
    case PtxOp::kPrmt:
      return permuted(a, b, c);
    case PtxOp::kBfe:
      return bit_field(a, b, c, bits, sign);
    case PtxOp::kBfi: {
      const uint64_t position = c & 255, length = v[3] & 255;
      uint64_t r = b;
      for (uint64_t k = 0; k < length && position + k < static_cast<uint64_t>(bits); ++k)
        r = (r & ~(uint64_t{1} << (position + k))) | (a >> k & 1) << (position + k);
      return r;
    }
    case PtxOp::kLop3: {
      uint64_t r = 0;
      for (int k = 0; k < 32; ++k)
        r |= (v[3] >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1)) & 1) << k;
      return r;
    }
    default:
      return a;
  }
}

bool compared(Predicate p, uint64_t a, uint64_t b, const PtxType& type) {
  const Elem elem = is_float(type.elem) ? Elem::kF64 : Elem::kI64;
  const int bits = elem_bits(type.elem);
  uint8_t result = 0;
  if (elem == Elem::kF64) {
    const double x = to_double(a, type.elem), y = to_double(b, type.elem);
    compare_kernel(p, elem)(&result, &x, &y, 1, Uniform::kNeither);
  } else {
    // Sign-extended numbers compare alike as unsigned ones, too.
    const int64_t x = as_signed(a, bits), y = as_signed(b, bits);
    compare_kernel(p, elem)(&result, &x, &y, 1, Uniform::kNeither);
  }
  return result != 0;
}

uint64_t saturated_integer(double v, const PtxType& to) {
  const int bits = elem_bits(to.elem);
  if (std::isnan(v)) return 0;
  const double high = std::ldexp(1.0, to.is_signed ? bits - 1 : bits), low = to.is_signed ? -high : 0.0;
  if (v >= high) return low_bits(~uint64_t{0}, to.is_signed ? bits - 1 : bits);
  if (v <= low) return to.is_signed ? low_bits(uint64_t{1} << (bits - 1), bits) : 0;
  return to.is_signed ? low_bits(static_cast<uint64_t>(static_cast<int64_t>(v)), bits)
                      : static_cast<uint64_t>(v);
}

double rounded_to_integer(double v, char way) {
  return way == 'Z'   ? std::trunc(v)
         : way == 'M' ? std::floor(v)
         : way == 'P' ? std::ceil(v)
                      : std::nearbyint(v);
}

uint64_t converted(const PtxStep& step, uint64_t bits) {
  const bool from_float = is_float(step.from.elem), to_float_type = is_float(step.type.elem);
  const int from_bits = elem_bits(step.from.elem);
  if (!from_float && !to_float_type) {
    const int64_t v = step.from.is_signed ? as_signed(bits, from_bits) : static_cast<int64_t>(bits);
    if (!step.saturate) return static_cast<uint64_t>(v);
    const int width = elem_bits(step.type.elem);
    if (width == 64) return static_cast<uint64_t>(v);
    const int64_t high = (int64_t{1} << (step.type.is_signed ? width - 1 : width)) - 1,
                  low = step.type.is_signed ? -high - 1 : 0;
    return static_cast<uint64_t>(std::clamp(v, low, high));
  }
  if (!from_float) {
    // Exact in 80 bits; the float is rounded once.
    const long double v = step.from.is_signed ? static_cast<long double>(as_signed(bits, from_bits))
                                              : static_cast<long double>(bits);
    if (step.type.elem == Elem::kF32) return std::bit_cast<uint32_t>(static_cast<float>(v));
    return ttir::from_double(static_cast<double>(v), step.type.elem);
  }
  double v = flushed(to_double(bits, step.from.elem), step);
  if (!to_float_type)
    return saturated_integer(rounded_to_integer(v, step.rounding == 'n' ? 'N' : step.rounding), step.type);
  if (std::isupper(static_cast<unsigned char>(step.rounding))) v = rounded_to_integer(v, step.rounding);
  const bool narrow8 = is_float8(step.type.elem);
  if (step.saturate && !narrow8) v = v > 0 ? std::min(v, 1.0) : 0.0;
  return ttir::from_double(flushed(v, step), step.type.elem,
                           step.rounding == 'z' ? Rounding::kTowardZero : Rounding::kNearestEven, narrow8);
}

uint64_t one(const PtxStep& step, const uint64_t* v) {
  const Elem elem = step.type.elem;
  if (step.op == PtxOp::kCvt || step.op == PtxOp::kCvtPack) return converted(step, v[0]);
  if (step.op == PtxOp::kSetp) return compared(step.compare, v[0], v[1], step.type);
  if (step.op == PtxOp::kSelp) return v[2] & 1 ? v[0] : v[1];
  if (step.op == PtxOp::kSlct) {
    const bool at_least = is_float(step.from.elem)
                              ? to_double(low_bits(v[2], elem_bits(step.from.elem)), step.from.elem) >= 0
                              : as_signed(v[2], 32) >= 0;
    return at_least ? v[0] : v[1];
  }
  if (step.op == PtxOp::kMov) return v[0];
  if (!is_float(elem)) return integer_result(step, v);
  // Sign operations keep a NaN's bits as they are.
  double x[3];
  for (int k = 0; k < 3; ++k) x[k] = flushed(to_double(v[k], elem), step);
  double r = flushed(float_result(step, x[0], x[1], x[2]), step);
  if (step.saturate) r = r > 0 ? std::min(r, 1.0) : 0.0;
  uint64_t bits = ttir::from_double(r, elem);
  // The hardware's tanh is good to 2^-11: ten bits of mantissa stay.
  if (step.op == PtxOp::kTanh && elem == Elem::kF32 && std::isfinite(r))
    bits = (bits + 0x1000) & ~uint64_t{0x1fff};
  return bits;
}

}  // namespace

void PtxProgram::start(uint64_t* registers) const { std::copy(initial_.begin(), initial_.end(), registers); }

void PtxProgram::run(uint64_t* registers) const {
  for (const PtxStep& step : steps_) {
    const PtxType& reads = step.op == PtxOp::kCvt || step.op == PtxOp::kCvtPack ? step.from : step.type;
    const int in_bits = elem_bits(reads.elem),
              out_bits = elem_bits(step.op == PtxOp::kSetp ? Elem::kI1 : step.type.elem);
    const bool widens = step.op == PtxOp::kMulWide || step.op == PtxOp::kMadWide;
    uint64_t v[4] = {};
    if (step.op == PtxOp::kUnpack) {
      const uint64_t whole = registers[step.in[0]];
      registers[step.out[0]] = low_bits(whole, in_bits / 2);
      registers[step.out[1]] = low_bits(whole >> (in_bits / 2), in_bits / 2);
      continue;
    }
    if (step.op == PtxOp::kPack) {
      registers[step.out[0]] = low_bits(registers[step.in[0]], in_bits / 2) |
                               low_bits(registers[step.in[1]], in_bits / 2) << (in_bits / 2);
      continue;
    }
    uint64_t result = 0;
    for (int half = 0; half < step.type.halves; ++half) {
      if (step.op == PtxOp::kCvtPack) {  // the first operand becomes the upper half
        v[0] = low_bits(registers[step.in[static_cast<size_t>(1 - half)]], in_bits);
      } else {
        for (size_t k = 0; k < step.in.size(); ++k) {
          const uint64_t whole = registers[step.in[k]];
          const bool as_it_is = (step.op == PtxOp::kSelp && k == 2) || (step.op == PtxOp::kSlct && k == 2) ||
                                (widens && k == 2) || k == 3;
          // Shifts and fields take their counts as 32 bits whatever is shifted.
          const bool count =
              (step.op == PtxOp::kShl || step.op == PtxOp::kShr || step.op == PtxOp::kBfe ||
               step.op == PtxOp::kBfi || step.op == PtxOp::kShfLeft || step.op == PtxOp::kShfRight) &&
              k >= (step.op == PtxOp::kBfi ? 2u : 1u) &&
              !(k == 1 && (step.op == PtxOp::kShfLeft || step.op == PtxOp::kShfRight));
          v[k] = as_it_is ? whole
                 : count  ? low_bits(whole, 32)
                          : low_bits(whole >> (half * in_bits), in_bits);
        }
      }
      const uint64_t bits = low_bits(one(step, v), widens ? 2 * out_bits : out_bits);
      result |= step.type.halves == 2 ? bits << (half * out_bits) : bits;
    }
    registers[step.out[0]] = result;
  }
}

UnaryKernel known_assembly(std::string_view assembly, std::string_view constraints) {
  // Squeezed: no blanks at the ends, no braces, no final semicolon.
  std::string text;
  for (char c : assembly)
    if (c != '{' && c != '}') text += c == '\n' || c == '\t' ? ' ' : c;
  while (!text.empty() && (text.back() == ' ' || text.back() == ';')) text.pop_back();
  size_t start = text.find_first_not_of(' ');
  if (start == std::string::npos) return nullptr;
  text = text.substr(start);
  const size_t space = text.find(' ');
  if (space == std::string::npos) return nullptr;
  std::string operands;
  for (char c : text.substr(space))
    if (c != ' ') operands += c;
  std::string registers;
  for (char c : constraints)
    if (c != ' ') registers += c;
  const std::string name = text.substr(0, space);
  if (operands != "$0,$1") return nullptr;
  if (registers != "=f,f" && registers != "=r,r") return nullptr;
  // The hardware's tanh is good to 2^-11: ten bits of mantissa stay.
  static constexpr auto coarse_tanh = [](void* out, const void* a, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
      const float y = std::tanh(static_cast<const float*>(a)[k]);
      static_cast<float*>(out)[k] = std::bit_cast<float>((std::bit_cast<uint32_t>(y) + 0x1000U) & ~0x1fffU);
    }
  };
  if (name == "tanh.approx.f32") return coarse_tanh;
  static const std::unordered_map<std::string, OpKind> kinds = {
      {"ex2.approx.f32", OpKind::kExp2},    {"ex2.approx.ftz.f32", OpKind::kExp2},
      {"lg2.approx.f32", OpKind::kLog2},    {"lg2.approx.ftz.f32", OpKind::kLog2},
      {"rsqrt.approx.f32", OpKind::kRsqrt}, {"rsqrt.approx.ftz.f32", OpKind::kRsqrt},
      {"sqrt.approx.f32", OpKind::kSqrt},   {"sqrt.approx.ftz.f32", OpKind::kSqrt},
      {"sqrt.rn.f32", OpKind::kSqrt},       {"sin.approx.f32", OpKind::kSin},
      {"sin.approx.ftz.f32", OpKind::kSin}, {"cos.approx.f32", OpKind::kCos},
      {"cos.approx.ftz.f32", OpKind::kCos}, {"abs.f32", OpKind::kAbsf},
      {"abs.ftz.f32", OpKind::kAbsf},       {"neg.f32", OpKind::kNegf},
      {"neg.ftz.f32", OpKind::kNegf}};
  const auto found = kinds.find(name);
  if (found != kinds.end()) return unary_kernel(found->second, Elem::kF32);
  static constexpr auto reciprocal = [](void* out, const void* a, int64_t n) {
    for (int64_t k = 0; k < n; ++k) static_cast<float*>(out)[k] = 1.0f / static_cast<const float*>(a)[k];
  };
  static constexpr auto saturate = [](void* out, const void* a, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
      const float v = static_cast<const float*>(a)[k];
      static_cast<float*>(out)[k] = v > 0 ? (v < 1 ? v : 1.0f) : 0.0f;
    }
  };
  if (name == "rcp.approx.f32" || name == "rcp.approx.ftz.f32" || name == "rcp.rn.f32") return reciprocal;
  if (name == "cvt.sat.f32.f32" || name == "cvt.rn.sat.f32.f32") return saturate;
  return nullptr;
}

namespace handlers {

// in: the operands; extra->assembly: the program; extra->elems: the operands' types, then the results';
// numbers[0]: how many neighbouring lanes one run takes, those of narrow types sharing registers of 32 bits.
void assembly(Machine& m, const Instruction& i) {
  const Extra& e = *i.extra;
  const PtxProgram& program = *e.assembly;
  const int64_t pack = e.numbers[0], lanes = m.lanes(i);
  const size_t operands = e.inputs.size(), results = e.outputs.size();
  std::vector<const std::byte*> from(operands);
  for (size_t k = 0; k < operands; ++k) {
    Value& v = m.slot(e.inputs[k]);
    from[k] = m.dense(v, e.elems[k], i, lanes);
  }
  std::vector<Tile*> to(results);
  for (size_t k = 0; k < results; ++k) to[k] = m.pool().take(lanes * elem_bytes(e.elems[operands + k]));
  std::vector<uint64_t> registers(static_cast<size_t>(program.registers()));
  const auto shared = [pack](Elem elem) {
    return std::min<int64_t>(std::max(32 / elem_bits(elem), 1), pack);
  };
  for (int64_t first = 0; first < lanes; first += pack) {
    program.start(registers.data());
    auto next = static_cast<size_t>(program.results());
    for (size_t k = 0; k < operands; ++k) {
      const int64_t bytes = elem_bytes(e.elems[k]), together = shared(e.elems[k]);
      for (int64_t lane = 0; lane < pack; lane += together)
        std::memcpy(&registers[next++], from[k] + (first + lane) * bytes,
                    static_cast<size_t>(bytes * together));
    }
    program.run(registers.data());
    next = 0;
    for (size_t k = 0; k < results; ++k) {
      const int64_t bytes = elem_bytes(e.elems[operands + k]), together = shared(e.elems[operands + k]);
      for (int64_t lane = 0; lane < pack; lane += together)
        std::memcpy(to[k]->data() + (first + lane) * bytes, &registers[next++],
                    static_cast<size_t>(bytes * together));
    }
  }
  for (size_t k = 0; k < results; ++k) {
    if (i.rank > 0 || lanes > 1) {
      m.set_dense(e.outputs[k], to[k]);
      continue;
    }
    const int64_t bits = canonical_bits(to[k]->data(), e.elems[operands + k]);
    m.pool().release(to[k]);
    m.set_uniform(e.outputs[k], bits);
  }
}

}  // namespace handlers
}  // namespace nereid::ttir
