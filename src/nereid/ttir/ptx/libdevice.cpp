#include "nereid/ttir/ptx/libdevice.h"

#include <string>
#include <unordered_map>

#include "nereid/ttir/exec/handlers/handlers.h"
#include "nereid/ttir/ptx/libdevice_table.h"

namespace nereid::ttir {
namespace {

const libdevice::Table& table() {
  static const libdevice::Table* const all = [] {
    auto* t = new libdevice::Table;
    libdevice::add_real(*t);
    libdevice::add_exact(*t);
    return t;
  }();
  return *all;
}

// The fast ones: what has a kernel of its own.
OpKind kernel_for(std::string_view symbol) {
  static const std::unordered_map<std::string_view, OpKind> kinds = {
      {"__nv_tanhf", OpKind::kTanh},   {"__nv_expf", OpKind::kExp},     {"__nv_exp2f", OpKind::kExp2},
      {"__nv_logf", OpKind::kLog},     {"__nv_log2f", OpKind::kLog2},   {"__nv_log10f", OpKind::kLog10},
      {"__nv_log1pf", OpKind::kLog1p}, {"__nv_expm1f", OpKind::kExpm1}, {"__nv_erff", OpKind::kErf},
      {"__nv_erfcf", OpKind::kErfc},   {"__nv_sinf", OpKind::kSin},     {"__nv_cosf", OpKind::kCos},
      {"__nv_tanf", OpKind::kTan},     {"__nv_sinhf", OpKind::kSinh},   {"__nv_coshf", OpKind::kCosh},
      {"__nv_asinf", OpKind::kAsin},   {"__nv_acosf", OpKind::kAcos},   {"__nv_atanf", OpKind::kAtan},
      {"__nv_asinhf", OpKind::kAsinh}, {"__nv_acoshf", OpKind::kAcosh}, {"__nv_atanhf", OpKind::kAtanh},
      {"__nv_sqrtf", OpKind::kSqrt},   {"__nv_rsqrtf", OpKind::kRsqrt}, {"__nv_floorf", OpKind::kFloor},
      {"__nv_ceilf", OpKind::kCeil},   {"__nv_fabsf", OpKind::kAbsf},   {"__nv_cbrtf", OpKind::kCbrt},
      {"__nv_powf", OpKind::kPowf},    {"__nv_atan2f", OpKind::kAtan2}, {"__nv_rintf", OpKind::kRoundeven},
      {"__nv_truncf", OpKind::kTrunc}};
  const auto found = kinds.find(symbol);
  return found == kinds.end() ? OpKind::kCount : found->second;
}

}  // namespace

External external_named(std::string_view symbol, const std::vector<Elem>& elems) {
  External e;
  const auto found = table().find(std::string(symbol));
  if (found == table().end()) return e;
  const auto& wanted = found->second.elems;
  if (wanted.size() != elems.size()) return e;
  for (size_t k = 0; k < elems.size(); ++k) {
    const bool truth = k + 1 == elems.size() && elems[k] == Elem::kI1 && wanted[k] == Elem::kI32;
    if (elems[k] != wanted[k] && !truth) return e;
  }
  const OpKind kind = kernel_for(symbol);
  if (kind != OpKind::kCount && elems.size() == 2) e.unary = unary_kernel(kind, elems[0]);
  if (kind != OpKind::kCount && elems.size() == 3) e.binary = binary_kernel(kind, elems[0]);
  e.call = found->second.call;
  return e;
}

namespace handlers {

// in: the operands; kernel: the one-lane function; extra->elems: the operands' types and the result's.
void external(Machine& m, const Instruction& i) {
  const auto call = reinterpret_cast<uint64_t (*)(const uint64_t*)>(const_cast<void*>(i.kernel));
  const auto& elems = i.extra->elems;
  const size_t operands = elems.size() - 1;
  bool uniform = true;
  for (size_t k = 0; k < operands; ++k) uniform = uniform && m.slot(i.in[k]).form == Form::kUniform;
  const int64_t n = uniform ? 1 : m.lanes(i);
  const std::byte* data[kInputs] = {};
  for (size_t k = 0; k < operands; ++k) {
    Value& v = m.slot(i.in[k]);
    data[k] = uniform ? reinterpret_cast<const std::byte*>(&v.base) : m.dense(v, elems[k], i, n);
  }
  const auto out_bytes = static_cast<size_t>(elem_bytes(i.out_elem));
  Tile* out = m.pool().take(n * static_cast<int64_t>(out_bytes));
  for (int64_t lane = 0; lane < n; ++lane) {
    uint64_t bits[kInputs] = {};
    for (size_t k = 0; k < operands; ++k)
      bits[k] = static_cast<uint64_t>(canonical_bits(data[k] + lane * elem_bytes(elems[k]), elems[k]));
    uint64_t result = call(bits);
    if (i.out_elem == Elem::kI1) result = result != 0;
    std::memcpy(out->data() + static_cast<size_t>(lane) * out_bytes, &result, out_bytes);
  }
  if (!uniform) return m.set_dense(i.out, out);
  const int64_t bits = canonical_bits(out->data(), i.out_elem);
  m.pool().release(out);
  m.set_uniform(i.out, bits);
}

}  // namespace handlers
}  // namespace nereid::ttir
