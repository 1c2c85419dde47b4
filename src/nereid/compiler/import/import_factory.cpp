// Tensors that depend on no tensor: filled, counted, constant.
#include <cmath>

#include "nereid/compiler/import/import.h"

namespace nereid::compiler {
namespace {

using Element = std::function<Value(Importer&, const Extents& sizes)>;

OperatorImport made_of(Element element, std::string name) {
  return [=](Importer& import) -> Status {
    const Extents sizes = import.result().sizes;
    return import.define(import.results()[0], element(import, sizes).id(), name);
  };
}

Value number(Importer& import, double value) {
  return {import.exprs(), import.exprs().constant(value, compute_type(import.result().dtype))};
}

OperatorImport filled(double value, std::string name) {
  return made_of([value](Importer& import, const Extents&) { return number(import, value); },
                 std::move(name));
}

// The number, or the tensor of one element, at a position or under a name of the schema.
OperatorImport filled_with(size_t position, std::string name, std::string what) {
  return made_of(
      [=](Importer& import, const Extents& sizes) -> Value {
        return {import.exprs(),
                import.operand(import.arg(position, name), sizes, compute_type(import.result().dtype))};
      },
      std::move(what));
}

Value index_of(Importer& import, int dimension) {
  return {import.exprs(), import.exprs().index(Index::dimension(dimension))};
}

// start + i * step. "aten::arange.start_step" has both, "aten::arange" neither.
Status arange(Importer& import) {
  const bool starts = import.call().op != "aten::arange" && import.call().op != "aten::arange.out";
  const double start = starts ? import.number(import.arg(0, "start"), 0) : 0;
  const double step =
      import.call().op == "aten::arange.start_step" ? import.number(import.arg(2, "step"), 1) : 1;
  const DType type = compute_type(import.result().dtype);
  if (import.result().sizes[0] == 0) return import.cannot("it is empty");
  const Value value = index_of(import, 0).cast(type) * step + start;
  return import.define(import.results()[0], value.id(), "arange");
}

// From both ends, as PyTorch counts: the second half from the end.
Status linspace(Importer& import) {
  const double start = import.number(import.arg(0, "start"), 0), end = import.number(import.arg(1, "end"), 0);
  const int64_t steps = import.result().sizes[0], half = steps / 2;
  const DType type = compute_type(import.result().dtype);
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  const Value i = index_of(import, 0);
  const Value first = i.cast(type) * step + start;
  const Value second =
      number(import, end) - (i.constant(static_cast<double>(steps - 1)) - i).cast(type) * step;
  return import.define(import.results()[0], (i < static_cast<double>(half)).where(first, second).id(),
                       "linspace");
}

Status eye(Importer& import) {
  const Value value =
      equal(index_of(import, 0), index_of(import, 1)).cast(compute_type(import.result().dtype));
  return import.define(import.results()[0], value.id(), "eye");
}

}  // namespace

void add_factories(OperatorTable& table) {
  for (const char* name : {"zeros", "zeros_like", "new_zeros", "zero"})
    table[std::string("aten::") + name] = filled(0, "zeros");
  for (const char* name : {"ones", "ones_like", "new_ones"})
    table[std::string("aten::") + name] = filled(1, "ones");
  table["aten::full"] = filled_with(1, "fill_value", "full");
  table["aten::full_like"] = filled_with(1, "fill_value", "full");
  table["aten::new_full"] = filled_with(2, "fill_value", "full");
  table["aten::fill"] = filled_with(1, "value", "fill");
  table["aten::scalar_tensor"] = filled_with(0, "s", "number");
  table["aten::copy"] = filled_with(1, "src", "copy");
  table["aten::arange"] = arange;
  table["aten::linspace"] = linspace;
  table["aten::eye"] = eye;
}

}  // namespace nereid::compiler
