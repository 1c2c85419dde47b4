// Cumulative sums, products, extrema.
#include "nereid/compiler/ir/reduce.h"

namespace nereid::compiler {
namespace {

OperatorImport scan(Reduction kind, std::string name, Reduction place = Reduction::kNone) {
  return [=](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const auto results = import.results();
    const Extents sizes = import.value(x.value()).sizes;
    if (sizes.empty()) return import.define(results.at(0), import.read(*x, {}, {}), name);
    const Axes axes(sizes, {import.integer(import.arg(1, "dim"), 0)});
    Reducer reduce(import);
    const DType type = compute_type(import.result().dtype);
    // Sums and products of parts are formed that no prefix is: in float32 they may overflow where the result
    // does not, or lose what cancels.
    const bool product = kind == Reduction::kProd && trace::is_floating(type);
    const bool wide = product || (type == DType::kF32 && kind == Reduction::kSum);
    const ExprId element = import.exprs().cast(reduce.element(*x, axes), wide ? DType::kF64 : type);
    NEREID_TRY_STATUS(
        import.define_scan(results.at(0), kind, axes.kept, axes.gone, axes.in_body(), element, name));
    if (results.size() < 2 || place == Reduction::kNone) return ok_status();
    return import.define_scan(results[1], place, axes.kept, axes.gone, axes.in_body(), element,
                              name + "_index");
  };
}

}  // namespace

void add_scans(OperatorTable& table) {
  table["aten::cumsum"] = scan(Reduction::kSum, "cumsum");
  table["aten::cumprod"] = scan(Reduction::kProd, "cumprod");
  table["aten::cummax"] = scan(Reduction::kMax, "cummax", Reduction::kArgMax);
  table["aten::cummin"] = scan(Reduction::kMin, "cummin", Reduction::kArgMin);
  table["aten::logcumsumexp"] = scan(Reduction::kLogSumExp, "logcumsumexp");
}

}  // namespace nereid::compiler
