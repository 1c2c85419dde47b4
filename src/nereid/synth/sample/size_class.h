// Sizes of dimensions: the declared grid, in classes of a factor of eight. docs/synth.md has the definition.
#pragma once

#include <cstdint>
#include <span>

namespace nereid::synth {

inline constexpr int kClasses = 6;
inline constexpr int kBitsPerClass = 3;  // the cap of class c is 2^(3c)

// The grid's sizes of a class, ascending: above the cap of the class before, at most its own.
std::span<const int32_t> grid(int size_class);
int size_class_of(int32_t size);
inline int32_t cap(int size_class) { return int32_t{1} << (kBitsPerClass * size_class); }

}  // namespace nereid::synth
