#include "nereid/trace/trace.h"

#include <iterator>

namespace nereid::trace {
namespace {

struct DTypeFact {
  std::string_view name;
  int64_t bytes;
  char kind;  // 'i' integral, 'f' floating, 'c' complex
};

// In the order of DType.
constexpr DTypeFact kDTypes[] = {
    {"bool", 1, 'i'},       {"u8", 1, 'i'},        {"i8", 1, 'i'},     {"i16", 2, 'i'},
    {"u16", 2, 'i'},        {"i32", 4, 'i'},       {"u32", 4, 'i'},    {"i64", 8, 'i'},
    {"u64", 8, 'i'},        {"f16", 2, 'f'},       {"bf16", 2, 'f'},   {"f32", 4, 'f'},
    {"f64", 8, 'f'},        {"f8e4m3fn", 1, 'f'},  {"f8e5m2", 1, 'f'}, {"f8e4m3fnuz", 1, 'f'},
    {"f8e5m2fnuz", 1, 'f'}, {"f8e8m0fnu", 1, 'f'}, {"c32", 4, 'c'},    {"c64", 8, 'c'},
    {"c128", 16, 'c'},
};
static_assert(std::size(kDTypes) == static_cast<size_t>(DType::kC128) + 1);

const DTypeFact& fact(DType type) { return kDTypes[static_cast<size_t>(type)]; }

void collect(const Arg& arg, std::vector<ValueId>& found) {
  if (const auto* tensor = std::get_if<TensorRef>(&arg.node)) {
    found.push_back(tensor->value);
  } else if (const auto* list = std::get_if<List>(&arg.node)) {
    for (const Arg& item : list->items) collect(item, found);
  } else if (const auto* dict = std::get_if<Dict>(&arg.node)) {
    for (const auto& [key, item] : dict->items) collect(item, found);
  }
}

}  // namespace

std::string_view to_string(DType type) { return fact(type).name; }

std::optional<DType> dtype_from_string(std::string_view name) {
  for (size_t i = 0; i < std::size(kDTypes); ++i)
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

int64_t element_bytes(DType type) { return fact(type).bytes; }
bool is_floating(DType type) { return fact(type).kind != 'i'; }
bool is_integral(DType type) { return fact(type).kind == 'i'; }

int64_t element_count(const Value& value) {
  int64_t count = 1;
  for (const int64_t size : value.sizes) count *= size;
  return count;
}

std::pair<int64_t, int64_t> byte_extent(const Value& value) {
  int64_t last = value.offset;
  for (size_t d = 0; d < value.sizes.size(); ++d) {
    if (value.sizes[d] == 0) return {0, 0};
    last += (value.sizes[d] - 1) * value.strides[d];
  }
  const int64_t width = element_bytes(value.dtype);
  return {value.offset * width, (last + 1) * width};
}

std::vector<ValueId> tensors_in(const Arg& arg) {
  std::vector<ValueId> found;
  collect(arg, found);
  return found;
}

}  // namespace nereid::trace
