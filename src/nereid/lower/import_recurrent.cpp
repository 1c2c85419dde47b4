// Recurrent cells, and layers of them as their steps one after the other.
#include "nereid/lower/import.h"

namespace nereid::lower {
namespace {

// Elements of a cell's gates: sum over k of x[n, k] w[gate * hidden + j, k] + bias, each a tensor [n, gates hidden].
struct Gates {
  TensorId tensor;
  int64_t hidden;
  std::optional<trace::ValueId> bias;
};

}  // namespace

void add_recurrent(OperatorTable&) {}

}  // namespace nereid::lower
