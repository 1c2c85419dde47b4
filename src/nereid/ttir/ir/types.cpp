#include "nereid/ttir/ir/types.h"

#include <array>
#include <utility>

namespace nereid::ttir {
namespace {

constexpr std::array<std::pair<Elem, std::string_view>, 15> kNames = {{
    {Elem::kI1, "i1"},
    {Elem::kI8, "i8"},
    {Elem::kI16, "i16"},
    {Elem::kI32, "i32"},
    {Elem::kI64, "i64"},
    {Elem::kF8E4M3FN, "f8E4M3FN"},
    {Elem::kF8E5M2, "f8E5M2"},
    {Elem::kF8E4M3FNUZ, "f8E4M3FNUZ"},
    {Elem::kF8E5M2FNUZ, "f8E5M2FNUZ"},
    {Elem::kF8E4M3B11FNUZ, "f8E4M3B11FNUZ"},
    {Elem::kBF16, "bf16"},
    {Elem::kF16, "f16"},
    {Elem::kF32, "f32"},
    {Elem::kF64, "f64"},
    {Elem::kI64, "index"},
}};

}  // namespace

std::string_view to_string(Elem e) {
  for (const auto& [elem, name] : kNames)
    if (elem == e) return name;
  return e == Elem::kPointer ? "pointer" : e == Elem::kDescriptor ? "descriptor" : "none";
}

Elem elem_named(std::string_view name) {
  for (const auto& [elem, its_name] : kNames)
    if (its_name == name) return elem;
  return Elem::kNone;
}

std::string to_string(const Type& type) {
  std::string dims;
  for (int64_t d : type.shape) dims += std::to_string(d) + "x";
  if (type.elem == Elem::kDescriptor)
    return "!tt.tensordesc<tensor<" + dims + std::string(to_string(type.pointee)) + ">>";
  std::string element = type.elem == Elem::kPointer ? "!tt.ptr<" + std::string(to_string(type.pointee)) + ">"
                                                    : std::string(to_string(type.elem));
  return type.tensor ? "tensor<" + dims + element + ">" : element;
}

}  // namespace nereid::ttir
