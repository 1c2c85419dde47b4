#include "nereid/ttir/ptx/inline_assembly.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "nereid/ttir/exec/handlers/handlers.h"
#include "nereid/ttir/ptx/approximate.h"

namespace nereid::ttir {

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
  static const std::unordered_map<std::string_view, Approximate> approximations = {
      {"ex2", Approximate::kEx2},     {"lg2", Approximate::kLg2},   {"sin", Approximate::kSin},
      {"cos", Approximate::kCos},     {"tanh", Approximate::kTanh}, {"sqrt", Approximate::kSqrt},
      {"rsqrt", Approximate::kRsqrt}, {"rcp", Approximate::kRcp}};
  const std::string_view instruction = std::string_view(name).substr(0, name.find('.'));
  const std::string_view form = std::string_view(name).substr(instruction.size());
  if (const auto found = approximations.find(instruction);
      found != approximations.end() && (form == ".approx.f32" || form == ".approx.ftz.f32"))
    return approximate_kernel(found->second, form == ".approx.ftz.f32");
  static const std::unordered_map<std::string, OpKind> kinds = {
      {"sqrt.rn.f32", OpKind::kSqrt}, {"abs.f32", OpKind::kAbsf}, {"neg.f32", OpKind::kNegf}};
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
  if (name == "rcp.rn.f32") return reciprocal;
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
