#include "nereid/replay/worker/memory_digest.h"

#include <algorithm>
#include <chrono>

#include "nereid/replay/worker/operators.h"

namespace nereid::replay {
namespace {

constexpr int64_t kWords = int64_t{1} << 22;  // at a time

// splitmix64's steps, on tensors of int64.
at::Tensor mixed(const at::Tensor& x) {
  const auto constant = [](uint64_t bits) { return static_cast<int64_t>(bits); };
  at::Tensor z = x * constant(0x9e3779b97f4a7c15);
  z = z.bitwise_xor(z.bitwise_right_shift(30)) * constant(0xbf58476d1ce4e5b9);
  z = z.bitwise_xor(z.bitwise_right_shift(27)) * constant(0x94d049bb133111eb);
  return z.bitwise_xor(z.bitwise_right_shift(31));
}

}  // namespace

uint64_t mix_digest(uint64_t digest, uint64_t next) {
  uint64_t x = digest * 0x9e3779b97f4a7c15 + next;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  return x ^ (x >> 31);
}

uint64_t unguessable_key() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const int here = 0;
  return mix_digest(static_cast<uint64_t>(now), reinterpret_cast<uintptr_t>(&here));
}

uint64_t memory_digest(const at::Tensor& bytes, uint64_t key) {
  constexpr int64_t kHalf = 0xffffffff;
  int64_t sum = 0;
  const auto add = [&](const at::Tensor& words, int64_t first) {
    const auto place =
        at::arange(first, first + words.numel(), words.options()) * 2 + static_cast<int64_t>(key);
    const auto low = words.bitwise_and(kHalf), high = words.bitwise_right_shift(32).bitwise_and(kHalf);
    const auto part = (low * mixed(place) + high * mixed(place + 1)).sum().item().toLong();
    sum = static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(part));
  };
  const int64_t whole = bytes.numel() / 8;
  for (int64_t first = 0; first < whole; first += kWords) {
    const int64_t count = std::min(kWords, whole - first);
    add(bytes.narrow(0, 8 * first, 8 * count).view(at::kLong), first);
  }
  if (const int64_t rest = bytes.numel() % 8; rest > 0) {
    auto last = at::zeros({8}, bytes.options());
    last.narrow(0, 0, rest).copy_(bytes.narrow(0, 8 * whole, rest));
    add(last.view(at::kLong), whole);
  }
  return mix_digest(static_cast<uint64_t>(sum), static_cast<uint64_t>(bytes.numel()));
}

}  // namespace nereid::replay
