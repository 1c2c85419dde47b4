// Reductions and scans along one axis, with any combine region.
//
// Rows of the axis are combined by runs of the region over whole tiles: a reduction's four quarters one after
// the other, then halves. A scan combines every row with the one 1, 2, 4, ... before it, and keeps the order.
#include <algorithm>
#include <limits>

#include "nereid/ttir/exec/access.h"
#include "nereid/ttir/exec/handlers/handlers.h"

namespace nereid::ttir::handlers {
namespace {

struct Extent {
  int64_t outer = 1, axis = 1, inner = 1;
};
Extent extent_of(const Instruction& i) {
  Extent e;
  const auto& shape = i.extra->in_shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (static_cast<int>(d) < i.axis)
      e.outer *= shape[d];
    else if (static_cast<int>(d) == i.axis)
      e.axis = shape[d];
    else
      e.inner *= shape[d];
  }
  return e;
}

// A reduction or scan along all of a tile that no single warp holds goes through shared memory, with a
// barrier.
void barrier_of_all(Machine& m, const Extent& e) {
  constexpr int64_t kWarp = 32;
  note_reads_used(m);
  if (e.outer != 1 || e.inner != 1 || e.axis <= kWarp) return;
  note_barrier(m);
  m.arrive();
}

const std::byte* input(Machine& m, const Instruction& i, size_t which, Elem elem) {
  Value& v = m.slot(i.extra->inputs[which]);
  int32_t shape[kLazyRank] = {};
  const auto& in = i.extra->in_shape;
  int64_t n = 1;
  for (size_t d = 0; d < in.size(); ++d) {
    if (d < kLazyRank) shape[d] = static_cast<int32_t>(in[d]);
    n *= in[d];
  }
  return m.dense(v, elem, shape, static_cast<int>(in.size()), n);
}

void kill_inputs(Machine& m, const Instruction& i) {
  for (size_t k = 0; k < i.extra->inputs.size(); ++k)
    if (i.extra->kills[k]) m.clear(m.slot(i.extra->inputs[k]));
}

int64_t reversed(int64_t value, int bits) {
  int64_t r = 0;
  for (int b = 0; b < bits; ++b) r |= ((value >> b) & 1) << (bits - 1 - b);
  return r;
}

// [outer][axis][inner] to [axis'][outer * inner], axis' = order(axis).
template <class Order>
Tile* rows_first(Machine& m, const std::byte* from, const Extent& e, int bytes, Order order) {
  Tile* tile = m.pool().take(e.outer * e.axis * e.inner * bytes);
  const auto row = static_cast<size_t>(e.inner * bytes);
  for (int64_t o = 0; o < e.outer; ++o)
    for (int64_t a = 0; a < e.axis; ++a)
      std::memcpy(tile->data() + (order(a) * e.outer + o) * e.inner * bytes,
                  from + (o * e.axis + a) * e.inner * bytes, row);
  return tile;
}

// Runs the region on rows [first, first + n) of `left` and of `right`, both tiles' elements; the results are
// returned.
void combine(Machine& m, const Instruction& i, const std::vector<const std::byte*>& left,
             const std::vector<const std::byte*>& right, int64_t lanes, std::vector<Tile*>& results) {
  const size_t k = left.size();
  for (size_t v = 0; v < 2 * k; ++v) {
    const auto bytes = lanes * elem_bytes(i.extra->elems[v % k]);
    Tile* tile = m.pool().take(bytes);
    std::memcpy(tile->data(), v < k ? left[v] : right[v - k], static_cast<size_t>(bytes));
    m.set_dense(i.extra->body_inputs[v], tile);
  }
  m.run_body(i.extra->body, lanes);
  results.clear();
  for (size_t v = 0; v < k; ++v) {
    Value& r = m.slot(i.extra->body_outputs[v]);
    if (r.form != Form::kDense) m.dense(r, i.extra->elems[v], nullptr, 0, lanes);
    ++r.tile->references;
    results.push_back(r.tile);
  }
  for (const int32_t slot : i.extra->body_inputs) m.clear(m.slot(slot));
  for (const int32_t slot : i.extra->body_outputs) {
    Value& r = m.slot(slot);
    if (r.form ==
        Form::kUniform) {  // a result that is a constant or comes from outside stays for the next run
      if (r.tile != nullptr) m.pool().release(r.tile);
      r.tile = nullptr;
    }
  }
}

void give_result(Machine& m, int32_t slot, Tile* tile, Elem elem, bool scalar) {
  if (!scalar) return m.set_dense(slot, tile);
  const int64_t bits = canonical_bits(tile->data(), elem);
  m.pool().release(tile);
  m.set_uniform(slot, bits);
}

}  // namespace

// One operand, one binary operation for which there is a kernel (i.kernel; kernels[0] folds rows of f32).
void reduce_fast(Machine& m, const Instruction& i) {
  const Extent e = extent_of(i);
  barrier_of_all(m, e);
  const Elem elem = i.elem;
  const int bytes = elem_bytes(elem);
  const std::byte* from = input(m, i, 0, elem);
  const auto kernel = reinterpret_cast<BinaryKernel>(const_cast<void*>(i.kernel));
  Tile* out = m.pool().take(e.outer * e.inner * bytes);
  const auto fold =
      reinterpret_cast<float (*)(const float*, int64_t)>(const_cast<void*>(i.extra->kernels[0]));
  if (e.inner == 1 && fold != nullptr) {
    for (int64_t o = 0; o < e.outer; ++o)
      reinterpret_cast<float*>(out->data())[o] =
          fold(reinterpret_cast<const float*>(from) + o * e.axis, e.axis);
  } else if (e.inner >= 8) {
    for (int64_t o = 0; o < e.outer; ++o) {
      std::byte* to = out->data() + o * e.inner * bytes;
      const std::byte* row = from + o * e.axis * e.inner * bytes;
      std::memcpy(to, row, static_cast<size_t>(e.inner * bytes));
      for (int64_t a = 1; a < e.axis; ++a)
        kernel(to, to, row + a * e.inner * bytes, e.inner, Uniform::kNeither);
    }
  } else {  // short rows: halves of everything at once
    int bits = 0;
    while ((int64_t{1} << bits) < e.axis) ++bits;
    Tile* work = rows_first(m, from, e, bytes, [&](int64_t a) { return reversed(a, bits); });
    for (int64_t rows = e.axis / 2; rows > 0; rows /= 2)
      kernel(work->data(), work->data(), work->data() + rows * e.outer * e.inner * bytes,
             rows * e.outer * e.inner, Uniform::kNeither);
    std::memcpy(out->data(), work->data(), static_cast<size_t>(e.outer * e.inner * bytes));
    m.pool().release(work);
  }
  kill_inputs(m, i);
  give_result(m, i.extra->outputs[0], out, elem, i.extra->in_shape.size() == 1);
}

// In an order that a GPU may take: a thread combines what it holds one after the other, then lanes that are
// far from each other do. So a combine function has to be associative and commutative.
void reduce(Machine& m, const Instruction& i) {
  const Extent e = extent_of(i);
  barrier_of_all(m, e);
  const size_t operands = i.extra->inputs.size();
  std::vector<Tile*> all(operands), work(operands), results;
  for (size_t k = 0; k < operands; ++k) {
    const Elem elem = i.extra->elems[k];
    all[k] = work[k] = rows_first(m, input(m, i, k, elem), e, elem_bytes(elem), [](int64_t a) { return a; });
  }
  kill_inputs(m, i);
  std::vector<const std::byte*> left(operands), right(operands);
  const auto add = [&](const std::vector<Tile*>& from, int64_t part, int64_t rows) {
    const int64_t lanes = rows * e.outer * e.inner;
    for (size_t k = 0; k < operands; ++k) {
      left[k] = work[k]->data();
      right[k] = from[k]->data() + part * lanes * elem_bytes(i.extra->elems[k]);
    }
    combine(m, i, left, right, lanes, results);
    for (size_t k = 0; k < operands; ++k) {
      if (work[k] != all[k]) m.pool().release(work[k]);
      work[k] = results[k];
    }
  };
  const int64_t parts = std::min<int64_t>(4, e.axis);
  for (int64_t part = 1; part < parts; ++part) add(all, part, e.axis / parts);
  for (int64_t rows = e.axis / parts / 2; rows > 0; rows /= 2) add(std::vector<Tile*>(work), 1, rows);
  for (size_t k = 0; k < operands; ++k) {
    if (work[k] != all[k]) m.pool().release(all[k]);
    give_result(m, i.extra->outputs[k], work[k], i.extra->elems[k], i.extra->in_shape.size() == 1);
  }
}

void scan(Machine& m, const Instruction& i) {
  const Extent e = extent_of(i);
  barrier_of_all(m, e);
  const size_t operands = i.extra->inputs.size();
  const bool reverse = (i.flags & kReverse) != 0;
  const auto order = [&](int64_t a) { return reverse ? e.axis - 1 - a : a; };
  const int64_t row = e.outer * e.inner;
  std::vector<Tile*> work(operands), results;
  for (size_t k = 0; k < operands; ++k) {
    const Elem elem = i.extra->elems[k];
    work[k] = rows_first(m, input(m, i, k, elem), e, elem_bytes(elem), order);
  }
  kill_inputs(m, i);
  const auto kernel = reinterpret_cast<BinaryKernel>(const_cast<void*>(i.kernel));
  if (kernel != nullptr) {  // one operand, one operation: one row after the other
    const int bytes = elem_bytes(i.extra->elems[0]);
    std::byte* data = work[0]->data();
    for (int64_t a = 1; a < e.axis; ++a)
      kernel(data + a * row * bytes, data + (a - 1) * row * bytes, data + a * row * bytes, row,
             Uniform::kNeither);
  } else {
    std::vector<const std::byte*> left(operands), right(operands);
    for (int64_t distance = 1; distance < e.axis; distance *= 2) {
      const int64_t lanes = (e.axis - distance) * row;
      for (size_t k = 0; k < operands; ++k) {
        left[k] = work[k]->data();
        right[k] = work[k]->data() + distance * row * elem_bytes(i.extra->elems[k]);
      }
      combine(m, i, left, right, lanes, results);
      for (size_t k = 0; k < operands; ++k) {
        const int bytes = elem_bytes(i.extra->elems[k]);
        std::memcpy(work[k]->data() + distance * row * bytes, results[k]->data(),
                    static_cast<size_t>(lanes * bytes));
        m.pool().release(results[k]);
      }
    }
  }
  for (size_t k = 0; k < operands; ++k) {
    const int bytes = elem_bytes(i.extra->elems[k]);
    Tile* out = m.pool().take(e.axis * row * bytes);
    for (int64_t o = 0; o < e.outer; ++o)
      for (int64_t a = 0; a < e.axis; ++a)
        std::memcpy(out->data() + (o * e.axis + a) * e.inner * bytes,
                    work[k]->data() + (order(a) * e.outer + o) * e.inner * bytes,
                    static_cast<size_t>(e.inner * bytes));
    m.pool().release(work[k]);
    m.set_dense(i.extra->outputs[k], out);
  }
}

// The region takes `pack` neighbouring elements of every operand at once, and gives as many results of each.
void map_elementwise(Machine& m, const Instruction& i) {
  const int64_t pack = i.extra->numbers[0];
  const int64_t lanes = i.lanes / pack;
  const size_t operands = i.extra->inputs.size(), results = i.extra->outputs.size();
  for (size_t k = 0; k < operands; ++k) {
    const auto bytes = static_cast<size_t>(elem_bytes(i.extra->elems[k]));
    const std::byte* from = input(m, i, k, i.extra->elems[k]);
    for (int64_t p = 0; p < pack; ++p) {
      Tile* tile = m.pool().take(lanes * static_cast<int64_t>(bytes));
      for (int64_t l = 0; l < lanes; ++l)
        std::memcpy(tile->data() + static_cast<size_t>(l) * bytes,
                    from + static_cast<size_t>(l * pack + p) * bytes, bytes);
      m.set_dense(i.extra->body_inputs[k * static_cast<size_t>(pack) + static_cast<size_t>(p)], tile);
    }
  }
  kill_inputs(m, i);
  m.run_body(i.extra->body, lanes);
  for (size_t k = 0; k < results; ++k) {
    const Elem elem = i.extra->elems[operands + k];
    const auto bytes = static_cast<size_t>(elem_bytes(elem));
    Tile* out = m.pool().take(i.lanes * static_cast<int64_t>(bytes));
    for (int64_t p = 0; p < pack; ++p) {
      Value& r = m.slot(i.extra->body_outputs[k * static_cast<size_t>(pack) + static_cast<size_t>(p)]);
      for (int64_t l = 0; l < lanes; ++l) {
        const std::byte* element = r.form == Form::kUniform ? reinterpret_cast<const std::byte*>(&r.base)
                                                            : r.tile->data() + static_cast<size_t>(l) * bytes;
        std::memcpy(out->data() + static_cast<size_t>(l * pack + p) * bytes, element, bytes);
      }
    }
    m.set_dense(i.extra->outputs[k], out);
  }
}

}  // namespace nereid::ttir::handlers
