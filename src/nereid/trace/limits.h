// What a trace may hold at most. Generous for any module, and small enough that no arithmetic on a decoded
// trace overflows 64 bits. docs/trace_format.md lists them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nereid::trace {

inline constexpr size_t kMaxStorages = 1 << 20, kMaxValues = 1 << 21, kMaxKernels = 1 << 14,
                        kMaxSteps = 1 << 20;
inline constexpr size_t kMaxItems = 1 << 20;         // of one list in an argument
inline constexpr size_t kMaxAlternatives = 1 << 12;  // of one launch
inline constexpr size_t kMaxCalls = 16, kMaxDims = 64, kMaxArgDepth = 32, kMaxNotes = 1 << 12;
inline constexpr int64_t kMaxStorageBytes = int64_t{1} << 44;
inline constexpr int64_t kMaxElements = int64_t{1}
                                        << 50;  // of a view; expanded ones have more than their storage
inline constexpr size_t kMaxTtirBytes = size_t{16} << 20;

}  // namespace nereid::trace
