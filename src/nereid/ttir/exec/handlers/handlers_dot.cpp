// Matrix products of tiles. Narrow inputs are widened to f32 (exact), f32 inputs rounded as `inputPrecision`
// says, and products added up in f32; f64 in f64, integers in i32.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "nereid/ttir/exec/access.h"
#include "nereid/ttir/exec/handlers/handlers.h"
#include "nereid/ttir/ir/float_formats.h"

namespace nereid::ttir::handlers {
namespace {

struct DotShape {
  int64_t batch = 1, m = 1, n = 1, k = 1;
};

const std::byte* input(Machine& m, const Instruction& i, int which, Elem elem, int64_t lanes,
                       const std::array<int32_t, kLazyRank>& shape, int rank) {
  return m.dense(m.slot(i.in[which]), elem, shape.data(), rank, lanes);
}

template <class T, class Acc>
void multiply(const T* a, const T* b, Acc* c, const DotShape& s) {
  for (int64_t r = 0; r < s.m; ++r)
    for (int64_t p = 0; p < s.k; ++p) {
      const Acc v = static_cast<Acc>(a[r * s.k + p]);
      for (int64_t q = 0; q < s.n; ++q) {
        if constexpr (std::is_integral_v<Acc>) {
          c[r * s.n + q] = static_cast<Acc>(static_cast<uint32_t>(c[r * s.n + q]) +
                                            static_cast<uint32_t>(v * static_cast<Acc>(b[p * s.n + q])));
        } else {
          c[r * s.n + q] += v * static_cast<Acc>(b[p * s.n + q]);
        }
      }
    }
}

// What becomes of an f32 input on its way into the tensor core: the parts that are multiplied, largest first.
// tf32x3: a big tf32 part (rounded to nearest, ties away) and the rest; bf16xN: N bf16 parts.
int parts_of(const std::string& precision) {
  if (precision == "tf32x3") return 2;
  if (precision == "bf16x3") return 2;
  if (precision == "bf16x6") return 3;
  return 1;
}
void split_parts(const std::string& precision, const float* x, int64_t n,
                 std::vector<std::vector<float>>& parts) {
  const int count = parts_of(precision);
  parts.assign(static_cast<size_t>(count), std::vector<float>(static_cast<size_t>(n)));
  for (int64_t k = 0; k < n; ++k) {
    float rest = x[k];
    for (int p = 0; p < count; ++p) {
      const float part = precision == "tf32x3" ? (p == 0 ? tf32_rounded(rest) : tf32_truncated(rest))
                                               : bf16_to_float(float_to_bf16(rest));
      parts[static_cast<size_t>(p)][static_cast<size_t>(k)] = part;
      rest -= part;  // NaN after an infinity: see dot_f32
    }
  }
}

void matmul(const float* a, const float* b, float* c, const DotShape& s) {
  matmul_f32(a, s.k, b, s.n, c, s.n, s.m, s.n, s.k);
}

// c += a * b of f32 tiles in the asked precision.
void dot_f32(Machine& m, const std::string& precision, const float* a, const float* b, float* c,
             const DotShape& s) {
  if (precision.empty() || precision == "ieee") return matmul(a, b, c, s);
  if (precision == "tf32") {
    Tile *ta = m.pool().take(s.m * s.k * 4), *tb = m.pool().take(s.k * s.n * 4);
    auto *fa = reinterpret_cast<float*>(ta->data()), *fb = reinterpret_cast<float*>(tb->data());
    for (int64_t k = 0; k < s.m * s.k; ++k) fa[k] = tf32_truncated(a[k]);
    for (int64_t k = 0; k < s.k * s.n; ++k) fb[k] = tf32_truncated(b[k]);
    matmul(fa, fb, c, s);
    m.pool().release(ta);
    m.pool().release(tb);
    return;
  }
  std::vector<std::vector<float>> pa, pb;
  split_parts(precision, a, s.m * s.k, pa);
  split_parts(precision, b, s.k * s.n, pb);
  // Smallest products first; those of the parts beyond the format's promise are left out. As Triton does:
  // what comes before the last product is zero where it is no number (an infinity has no small part), and the
  // accumulator is added at the end, so that infinities stay infinities.
  const int count = static_cast<int>(pa.size());
  std::vector<float> sum(static_cast<size_t>(s.m * s.n), 0.0f);
  for (int order = count - 1; order > 0; --order)
    for (int p = 0; p <= order; ++p)
      matmul(pa[static_cast<size_t>(p)].data(), pb[static_cast<size_t>(order - p)].data(), sum.data(), s);
  for (float& each : sum)
    if (std::isnan(each)) each = 0.0f;
  matmul(pa[0].data(), pb[0].data(), sum.data(), s);
  for (size_t k = 0; k < sum.size(); ++k) c[k] += sum[k];
}

// An operand's elements as f32, in a tile of its own unless it is f32 already.
Tile* widened(Machine& m, const std::byte* data, Elem elem, int64_t n) {
  Tile* tile = m.pool().take(n * 4);
  widen_kernel(elem)(tile->data(), data, n);
  return tile;
}

// The accumulator as f32 (or its own f64 or i32), ready to be added to, and written back to the result's
// type.
Tile* accumulator(Machine& m, const Instruction& i, int which, Elem elem, int64_t n) {
  Value& c = m.slot(i.in[which]);
  const bool wide = elem == Elem::kF64 || elem == Elem::kI32 || elem == Elem::kF32;
  const int bytes = elem == Elem::kF64 ? 8 : 4;
  const bool shared = i.in[which] == i.in[0] || i.in[which] == i.in[1];
  if (wide && !shared && c.form == Form::kDense && c.tile->references == 1 && !c.tile->borrowed() &&
      (i.kills & (1u << which))) {
    ++c.tile->references;
    return c.tile;
  }
  Tile* tile = m.pool().take(n * bytes);
  if (c.form == Form::kUniform && c.base == 0) {
    std::memset(tile->data(), 0, static_cast<size_t>(n * bytes));
    return tile;
  }
  const std::byte* data = m.dense(c, elem, i, n);
  if (wide)
    std::memcpy(tile->data(), data, static_cast<size_t>(n * bytes));
  else
    widen_kernel(elem)(tile->data(), data, n);
  return tile;
}

void set_result(Machine& m, const Instruction& i, Tile* acc, Elem elem, int64_t n) {
  if (elem == Elem::kF64 || elem == Elem::kI32 || elem == Elem::kF32) return m.set_dense(i.out, acc);
  Tile* out = m.pool().take(n * elem_bytes(elem));
  narrow_kernel(elem)(out->data(), acc->data(), n);
  m.pool().release(acc);
  m.set_dense(i.out, out);
}

}  // namespace

// numbers: batch, m, n, k; elems: of a, b.
void dot(Machine& m, const Instruction& i) {
  note_reads_used(m);
  const auto& numbers = i.extra->numbers;
  const DotShape s{numbers[0], numbers[1], numbers[2], numbers[3]};
  const Elem ea = i.extra->elems[0], eb = i.extra->elems[1];
  std::array<int32_t, kLazyRank> shape_a{}, shape_b{};
  const int rank = i.rank;
  for (int d = 0; d < rank; ++d)
    shape_a[static_cast<size_t>(d)] = shape_b[static_cast<size_t>(d)] = i.shape[static_cast<size_t>(d)];
  shape_a[static_cast<size_t>(rank - 1)] = static_cast<int32_t>(s.k);
  shape_b[static_cast<size_t>(rank - 2)] = static_cast<int32_t>(s.k);
  const std::byte* a = input(m, i, 0, ea, s.batch * s.m * s.k, shape_a, rank);
  const std::byte* b = input(m, i, 1, eb, s.batch * s.k * s.n, shape_b, rank);
  Tile* acc = accumulator(m, i, 2, i.out_elem, i.lanes);
  Tile *ta = nullptr, *tb = nullptr;
  if (is_float(ea) && ea != Elem::kF64 && ea != Elem::kF32) {
    ta = widened(m, a, ea, s.batch * s.m * s.k);
    a = ta->data();
  }
  if (is_float(eb) && eb != Elem::kF64 && eb != Elem::kF32) {
    tb = widened(m, b, eb, s.batch * s.k * s.n);
    b = tb->data();
  }
  static const std::string kIeee = "ieee";
  for (int64_t batch = 0; batch < s.batch; ++batch) {
    const int64_t oa = batch * s.m * s.k, ob = batch * s.k * s.n, oc = batch * s.m * s.n;
    if (ea == Elem::kF64) {
      multiply(reinterpret_cast<const double*>(a) + oa, reinterpret_cast<const double*>(b) + ob,
               reinterpret_cast<double*>(acc->data()) + oc, s);
    } else if (ea == Elem::kI8) {
      multiply(reinterpret_cast<const int8_t*>(a) + oa, reinterpret_cast<const int8_t*>(b) + ob,
               reinterpret_cast<int32_t*>(acc->data()) + oc, s);
    } else {
      dot_f32(m, ea == Elem::kF32 ? i.extra->text : kIeee, reinterpret_cast<const float*>(a) + oa,
              reinterpret_cast<const float*>(b) + ob, reinterpret_cast<float*>(acc->data()) + oc, s);
    }
  }
  if (ta != nullptr) m.pool().release(ta);
  if (tb != nullptr) m.pool().release(tb);
  set_result(m, i, acc, i.out_elem, i.lanes);
}

namespace {

// e2m1, the 4-bit float of mxfp4: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
float e2m1(unsigned bits) {
  static constexpr float kValues[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const float v = kValues[bits & 7];
  return bits & 8 ? -v : v;
}

// What a GPU without scaled matrix units makes of dot_scaled (Triton's DecomposeScaledBlocked): operands and
// scales become fp16 where either side is fp16, else bf16, and are multiplied in that type. A scale beyond
// its range is infinite there, 2^-127 is zero, and 255 is NaN.
float in_type(float value, Elem type) {
  // Of at most 11 significant bits: exact.
  if (type == Elem::kF16 && std::abs(value) >= 0x1p-14f && std::abs(value) <= 65504) return value;
  return to_float(from_float(value, type), type);
}

float e8m0(uint8_t bits, Elem type) {
  if (bits == 255) return std::numeric_limits<float>::quiet_NaN();
  return in_type(bits == 0 ? 0 : std::ldexp(1.0f, static_cast<int>(bits) - 127), type);
}

// An operand of dot_scaled as f32: [rows][k] with `k` innermost or outermost as laid out, two e2m1 to a byte
// along k. scales: [rows][k / 32], e8m0. `type`: what it is computed in.
std::vector<float> scaled(const std::byte* data, const std::string& format, Elem elem, Elem type,
                          const uint8_t* scales, int64_t rows, int64_t k, bool k_innermost,
                          int64_t scale_block, bool packed_along_k) {
  std::vector<float> out(static_cast<size_t>(rows * k));
  const auto* bytes = reinterpret_cast<const uint8_t*>(data);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t p = 0; p < k; ++p) {
      float v;
      if (format == "e2m1") {
        int64_t at;
        unsigned nibble;
        if (packed_along_k) {
          at = k_innermost ? r * (k / 2) + p / 2 : (p / 2) * rows + r;
          nibble = static_cast<unsigned>(p & 1);
        } else {
          at = k_innermost ? (r / 2) * k + p : p * (rows / 2) + r / 2;
          nibble = static_cast<unsigned>(r & 1);
        }
        v = e2m1((bytes[at] >> (4 * nibble)) & 15u);
      } else {
        const int64_t at = k_innermost ? r * k + p : p * rows + r;
        if (format == "e4m3")
          v = to_float(bytes[at], Elem::kF8E4M3FN);
        else if (format == "e5m2")
          v = to_float(bytes[at], Elem::kF8E5M2);
        else
          v = in_type(to_float(reinterpret_cast<const uint16_t*>(data)[at], elem), type);
      }
      if (scales != nullptr)
        v = in_type(v * e8m0(scales[r * (k / scale_block) + p / scale_block], type), type);
      out[static_cast<size_t>(k_innermost ? r * k + p : p * rows + r)] = v;
    }
  return out;
}

}  // namespace

// in: a, b, c, scale of a, scale of b. numbers: batch, m, n, k, lhs packed along k, rhs packed along k, scale
// lanes of a, of b; text: "lhs rhs".
void dot_scaled(Machine& m, const Instruction& i) {
  note_reads_used(m);
  const auto& numbers = i.extra->numbers;
  const DotShape s{1, numbers[1], numbers[2], numbers[3]};
  const size_t space = i.extra->text.find(' ');
  const std::string lhs = i.extra->text.substr(0, space), rhs = i.extra->text.substr(space + 1);
  const auto data = [&](int which, Elem elem, int64_t rows, int64_t columns) {
    const int32_t shape[2] = {static_cast<int32_t>(rows), static_cast<int32_t>(columns)};
    return m.dense(m.slot(i.in[which]), elem, shape, 2, rows * columns);
  };
  const bool pack_a = lhs == "e2m1" && numbers[4] != 0, pack_a_rows = lhs == "e2m1" && numbers[4] == 0;
  const bool pack_b = rhs == "e2m1" && numbers[5] != 0, pack_b_rows = rhs == "e2m1" && numbers[5] == 0;
  const std::byte* a = data(0, i.extra->elems[0], pack_a_rows ? s.m / 2 : s.m, pack_a ? s.k / 2 : s.k);
  const std::byte* b = data(1, i.extra->elems[1], pack_b ? s.k / 2 : s.k, pack_b_rows ? s.n / 2 : s.n);
  const uint8_t *sa = nullptr, *sb = nullptr;
  int64_t block_a = 32, block_b = 32;
  if (i.in[3] >= 0) {
    block_a = s.k / (numbers[6] / s.m);
    sa = reinterpret_cast<const uint8_t*>(data(3, Elem::kI8, s.m, numbers[6] / s.m));
  }
  if (i.in[4] >= 0) {
    block_b = s.k / (numbers[7] / s.n);
    sb = reinterpret_cast<const uint8_t*>(data(4, Elem::kI8, s.n, numbers[7] / s.n));
  }
  const Elem type = lhs == "fp16" || rhs == "fp16" ? Elem::kF16 : Elem::kBF16;
  const auto fa = scaled(a, lhs, i.extra->elems[0], type, sa, s.m, s.k, true, block_a, numbers[4] != 0);
  const auto fb = scaled(b, rhs, i.extra->elems[1], type, sb, s.n, s.k, false, block_b, numbers[5] != 0);
  Tile* acc = accumulator(m, i, 2, i.out_elem, i.lanes);
  matmul(fa.data(), fb.data(), reinterpret_cast<float*>(acc->data()), s);
  set_result(m, i, acc, i.out_elem, i.lanes);
}

}  // namespace nereid::ttir::handlers
