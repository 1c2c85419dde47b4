#include "nereid/synth/sample/size_class.h"

namespace nereid::synth {
namespace {

constexpr int32_t k0[] = {1};
constexpr int32_t k1[] = {2, 3, 4, 5, 6, 7, 8};
constexpr int32_t k2[] = {10, 12, 16, 17, 20, 24, 31, 32, 33, 48, 50, 64};
constexpr int32_t k3[] = {65, 80, 96, 100, 127, 128, 192, 224, 256, 257, 384, 512};
constexpr int32_t k4[] = {640, 768, 1000, 1023, 1024, 1025, 1536, 2000, 2048, 2560, 3072, 4096};
constexpr int32_t k5[] = {4097, 5120, 8191, 8192, 10000, 12288, 16384, 16385, 20000, 24576, 32000, 32768};
constexpr std::span<const int32_t> kGrid[kClasses] = {k0, k1, k2, k3, k4, k5};

}  // namespace

std::span<const int32_t> grid(int size_class) { return kGrid[size_class]; }

int size_class_of(int32_t size) {
  int size_class = 0;
  while (cap(size_class) < size) ++size_class;
  return size_class;
}

}  // namespace nereid::synth
