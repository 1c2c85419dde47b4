// Random draws: PyTorch draws the same numbers from the same stream, into memory of its own, and kernels
// compute what is around them. A draw's operands are constants: of `dropout(x)` what is drawn is the dropout
// of ones, of `x.normal_()` it is new memory of x's layout, because which number of the stream goes where
// depends on the layout.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "nereid/compiler/import/import.h"
#include "nereid/render/python_text.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kAlignment = 16;  // bytes: CUDA's dropout draws otherwise for what lies off it

std::string memory_options(const Importer& import, DType type, const TracedTensor& place) {
  return fmt::format("device={}, dtype={}", import.device_text(place), render::dtype_text(type));
}

// New memory, laid out as the value is.
std::string memory_like(const Importer& import, const TracedTensor& value) {
  const std::string sizes = sizes_text(value.sizes);
  if (value.strides == row_major(value.sizes))
    return fmt::format("torch.empty({}, {})", sizes, memory_options(import, value.dtype, value));
  return fmt::format("torch.empty_strided({}, {}, {})", sizes, sizes_text(value.strides),
                     memory_options(import, value.dtype, value));
}

// The same, full of ones, and as far from CUDA's alignment.
std::string ones_like(const Importer& import, const TracedTensor& value) {
  const Size offset = value.offset % std::max<int64_t>(kAlignment / trace::element_bytes(value.dtype), 1);
  if (value.strides == row_major(value.sizes) && offset == 0)
    return fmt::format("torch.ones({}, {})", sizes_text(value.sizes),
                       memory_options(import, value.dtype, value));
  Size extent = offset + 1;
  for (size_t d = 0; d < value.sizes.size(); ++d) extent += (value.sizes[d] - 1) * value.strides[d];
  return fmt::format("torch.ones({}, {}).as_strided({}, {}, {})", extent.text(),
                     memory_options(import, value.dtype, value), sizes_text(value.sizes),
                     sizes_text(value.strides), offset.text());
}

// The call's arguments from number `first` on, a generator left out.
Result<std::string> arguments_from(const Importer& import, size_t first) {
  std::vector<std::string> all;
  const auto no_tensor = [&](trace::ValueId) -> Result<std::string> {
    return input_error("{}: an argument is a tensor", import.call().op);
  };
  const auto text = [&](const trace::Arg& arg) {
    return render::tree_python(arg, no_tensor, "device", render::Names::kFile);
  };
  for (size_t i = first; i < import.call().args.size(); ++i) {
    NEREID_TRY(std::string argument, text(import.call().args[i]));
    all.push_back(std::move(argument));
  }
  for (const auto& [key, arg] : import.call().kwargs) {
    if (key == "generator") continue;
    NEREID_TRY(const std::string argument, text(arg));
    all.push_back(fmt::format("{}={}", key, argument));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

// An element of what is drawn into memory of the layout of `value`.
Value drawn(Importer& import, const TracedTensor& value, const std::string& text, const std::string& name) {
  const TensorId made = import.draw(value.sizes, value.strides, value.dtype, text, name);
  return {import.exprs(), import.load(made, dimensions(value.sizes.size()))};
}

Status define_drawn(Importer& import, const std::string& text) {
  const std::string name = short_name(import.call().op);
  return import.define(import.results()[0], drawn(import, import.result(), text, name).id(), name);
}

// "x.uniform_(0, 1)", "torch.bernoulli(x, p)": what x holds does not matter.
OperatorImport filled_by(const std::string& method) {
  return [method](Importer& import) -> Status {
    if (import.call().op == "aten::bernoulli" || import.tensor(import.arg(1, "p")))
      return import.cannot("the probabilities of its draws are computed");
    NEREID_TRY(const std::string arguments, arguments_from(import, 1));
    return define_drawn(import,
                        fmt::format("{}.{}({})", memory_like(import, import.result()), method, arguments));
  };
}

// "torch.randn(sizes)": as a fill of new memory, which draws the same.
OperatorImport drawn_by(const std::string& fill) {
  return [fill](Importer& import) -> Status {
    return define_drawn(import, fmt::format("{}.{}", memory_like(import, import.result()), fill));
  };
}

Status randint(Importer& import) {
  const bool like = import.call().op.starts_with("aten::randint_like");
  const bool low = import.call().op.find(".low") != std::string::npos;
  const size_t first = like ? 1 : 0;
  const int64_t from = low ? import.integer(import.arg(first, "low"), 0) : 0;
  const int64_t to = import.integer(import.arg(first + (low ? 1 : 0), "high"), 1);
  return define_drawn(import,
                      fmt::format("{}.random_({}, {})", memory_like(import, import.result()), from, to));
}

Status randperm(Importer& import) {
  const TracedTensor& out = import.result();
  return define_drawn(
      import, fmt::format("torch.randperm({}, {})", out.sizes[0], memory_options(import, out.dtype, out)));
}

// normal_ in place, and torch.normal, of which mean and deviation may be tensors.
Status normal_draw(Importer& import) {
  const std::string& op = import.call().op;
  if (op.starts_with("aten::normal_")) return filled_by("normal_")(import);
  const trace::Arg *mean = import.arg(0, "mean"), *deviation = import.arg(1, "std");
  const TracedTensor& out = import.result();
  const DType type = compute_type(out.dtype);
  const bool computed = import.tensor(deviation).has_value();
  const std::string fill =
      computed ? "normal_()"
               : fmt::format("normal_({}, {})",
                             import.tensor(mean) ? "0.0" : render::float_text(import.number(mean, 0)),
                             render::float_text(import.number(deviation, 1)));
  Value value = drawn(import, out, memory_like(import, out) + "." + fill, "normal");
  if (computed) value = value * Value(import.exprs(), import.operand(deviation, out.sizes, type));
  if (computed || import.tensor(mean))
    value = value + Value(import.exprs(), import.operand(mean, out.sizes, type));
  return import.define(import.results()[0], value.id(), "normal");
}

// One number a channel of a sample.
TracedTensor channels_of(TracedTensor value) {
  for (size_t d = 2; d < value.sizes.size(); ++d) value.sizes[d] = 1;
  value.strides = row_major(value.sizes), value.offset = 0;
  return value;
}

// The element of a mask, over the dimensions of its result.
Value kept_by(Importer& import, const TracedTensor& mask, const std::string& text, const std::string& name) {
  const TensorId made = import.draw(mask.sizes, mask.strides, mask.dtype, text, name);
  std::vector<Index> at;
  for (size_t d = 0; d < mask.sizes.size(); ++d)
    at.push_back(mask.sizes[d] == 1 ? Index() : Index::dimension(static_cast<int>(d)));
  const Value drawn(import.exprs(), import.load(made, at));
  return negated(equal(drawn, 0));
}

// What is kept is scaled; where nothing is drawn x stays as it is. Dropped infinities become NaN, as
// PyTorch's do.
Status dropout(Importer& import) {
  const std::string& op = import.call().op;
  std::string name = short_name(op);
  if (name.ends_with("_")) name.pop_back();
  const bool feature = name.starts_with("feature_"), alpha = name.find("alpha") != std::string::npos;
  const double p = import.number(import.arg(1, "p"), 0.5);
  const bool train = import.flag(import.arg(2, "train"), true);
  const trace::ValueId out = import.results()[0];
  const auto given = import.tensor(import.arg(0, "input"));
  if (!given) return import.cannot("it is given no tensor");
  const TracedTensor& x = import.value(*given);
  const bool in_place = x.storage == import.result().storage;
  const bool native = name == "native_dropout";
  if (!native && in_place && (!train || p == 0)) return ok_status();  // it is what it was given
  const Value value = import.operand(0);
  if (native && (!train || p == 0 || p == 1))
    return import.cannot("its mask is that of a dropout which draws nothing");
  if (!train || p == 0) return import.define(out, value.id(), "dropout");
  if (p == 1) return import.define(out, (value * 0).id(), "dropout");
  TracedTensor mask = feature ? channels_of(x) : x;
  const std::string rate = render::float_text(p);
  if (native) {
    mask = import.result(1);
    const Value keeps = kept_by(
        import, mask, fmt::format("torch.native_dropout({}, {}, True)[1]", ones_like(import, x), rate),
        "dropout_mask");
    NEREID_TRY_STATUS(import.define(import.results()[1], keeps.id(), "dropout_mask"));
    const Value factor = keeps.where(value.constant(1 / (1 - p)), value.constant(0));
    return import.define(out, (value * factor).id(), "dropout");
  }
  if (alpha) {
    mask.strides = feature ? mask.strides : import.result().strides;
    const Value keeps = kept_by(
        import, mask, fmt::format("{}.bernoulli_({})", memory_like(import, mask), render::float_text(1 - p)),
        "dropout_mask");
    constexpr double kAlpha = 1.7580993408473766;  // PyTorch's, of SELU
    const double scale = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p)), shift = kAlpha * scale * p;
    const Value factor = keeps.where(value.constant(scale), value.constant(0));
    const Value added = keeps.where(value.constant(shift), value.constant(shift - kAlpha * scale));
    return import.define(out, (value * factor + added).id(), "alpha_dropout");
  }
  // In place PyTorch draws by another kernel, and so does the mask.
  const std::string text =
      fmt::format("torch.{}{}({}, {}, True)", name, in_place ? "_" : "", ones_like(import, mask), rate);
  if (!in_place && !feature) mask.strides = import.result().strides;
  const Value keeps = kept_by(import, mask, text, "dropout_mask");
  const Value factor = keeps.where(value.constant(1 / (1 - p)), value.constant(0));
  return import.define(out, (value * factor).id(), "dropout");
}

}  // namespace

void add_random(OperatorTable& table) {
  for (const char* name :
       {"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout"})
    table[std::string("aten::") + name] = dropout;
  for (const char* name : {"uniform", "exponential", "cauchy", "log_normal", "geometric", "random"})
    table[std::string("aten::") + name] = filled_by(std::string(name) + "_");
  table["aten::bernoulli"] = filled_by("bernoulli_");
  table["aten::normal"] = normal_draw;
  for (const char* name : {"rand", "rand_like"}) table[std::string("aten::") + name] = drawn_by("uniform_()");
  for (const char* name : {"randn", "randn_like"})
    table[std::string("aten::") + name] = drawn_by("normal_()");
  table["aten::randint"] = table["aten::randint_like"] = randint;
  table["aten::randperm"] = randperm;
}

}  // namespace nereid::compiler
