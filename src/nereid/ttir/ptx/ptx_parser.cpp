// Reads inline PTX: constraints, declarations, then one instruction after the other.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <unordered_map>

#include "nereid/base/text.h"
#include "nereid/ttir/ir/float_formats.h"
#include "nereid/ttir/ptx/ptx_program.h"

namespace nereid::ttir {
namespace {

constexpr size_t kMaxPtxSteps = 4096;
constexpr size_t kMaxRegisters = 1024;

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

}  // namespace

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
    if (program_.steps_.size() >= kMaxPtxSteps || program_.initial_.size() >= kMaxRegisters)
      return fail("so long a text");
    if (statement[0] == '@') return fail(fmt::format("the predicate of \"{}\"", statement));
    const size_t space = std::min(statement.find_first_of(" \t\n"), statement.size());
    const std::string_view name = statement.substr(0, space), rest = trimmed(statement.substr(space));
    if (name == ".reg") return read_declaration(rest);
    if (rest.empty() && (name == "griddepcontrol.wait" || name == "griddepcontrol.launch_dependents")) {
      // One kernel runs after the other here. They write no register: results hold what was there.
      constexpr uint64_t kGarbage = 0x7FA5A5A57FA5A5A5;
      std::fill_n(program_.initial_.begin(), program_.results_, kGarbage);
      return true;
    }
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
      if (program_.initial_.size() >= kMaxRegisters) return fail("so many registers");
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
      else if (m == "approx" || m == "full")
        (m == "full" ? step_.full : step_.approximate) = true;
      else if (m == "rn")
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
    if (!exists(*op)) return false;
    if (*op == PtxOp::kSlct && (is_float(step_.from.elem) || step_.from.elem == Elem::kI32) == false)
      return false;
    return true;
  }

  // Of which types an approximate instruction exists.
  bool exists(PtxOp op) const {
    const Elem elem = step_.type.elem;
    if (op == PtxOp::kEx2 || op == PtxOp::kTanh) return elem != Elem::kF64;
    if (op == PtxOp::kSin || op == PtxOp::kCos || op == PtxOp::kLg2) return elem == Elem::kF32;
    if (op == PtxOp::kRcp || op == PtxOp::kRsqrt) return elem == Elem::kF32 || elem == Elem::kF64;
    if (op == PtxOp::kSqrt || (op == PtxOp::kDiv && is_float(elem)))
      return elem == Elem::kF32 || (elem == Elem::kF64 && !step_.approximate && !step_.full);
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

}  // namespace nereid::ttir
