// Device memory with a mapping of its own: fenced by unmapped addresses, and able to be handed to
// another process.
//
//   reserved: | fence, unmapped | pages ............ | fence, unmapped |
//   kAtEnd:                     | slack | data ..... |                     an overrun faults
//   kAtBegin:                   | data ..... | slack |                     an underrun faults
//
// Data starts at a multiple of kAlignment, as the caching allocator's does, since kernels depend on it
// (Triton specialises on 16), so up to 15 bytes may be between the data's end and the fence. They, and the
// slack on the other side, hold kCanary and `check_slack` sees whether they were overwritten.
#pragma once

#include <cstdint>
#include <string>

#include "nereid/base/file.h"
#include "nereid/gpu/driver.h"

namespace nereid::gpu {

enum class Placement { kAtEnd, kAtBegin };
enum class Access { kRead, kReadWrite };

// Where a storage of `bytes` is inside its pages: arithmetic alone.
struct Layout {
  size_t mapped = 0;    // bytes of pages, a multiple of the granularity
  size_t reserved = 0;  // with both fences
  size_t fence = 0;     // bytes before the pages, and after them
  size_t offset = 0;    // of the data, from the pages' start
};
Layout lay_out(size_t bytes, size_t granularity, Placement placement);

class Mapping {
 public:
  static constexpr size_t kAlignment = 16;
  static constexpr size_t kFence = size_t{256} << 20;
  static constexpr unsigned char kCanary = 0xC5;

  // New memory, its content undefined but for the slack, which `stream` fills.
  static Result<Mapping> create(const Driver& driver, int device, size_t bytes, Placement placement,
                                CUstream stream = nullptr);

  // The memory of a descriptor that another process's `export_fd` made; `bytes` and `placement` as they
  // were there.
  static Result<Mapping> import(const Driver& driver, int device, const Fd& fd, size_t bytes,
                                Placement placement, Access access);

  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();  // unmaps; the memory goes when no process maps it any more

  CUdeviceptr data() const { return base_ + layout_.fence + layout_.offset; }
  size_t bytes() const { return bytes_; }
  const Layout& layout() const { return layout_; }

  // A descriptor to send to the other process. The descriptor carries no address and no size.
  Result<Fd> export_fd() const;

  // Bytes of slack that no longer hold the canary: 0 where no access strayed. Synchronous; a created mapping
  // only. Looks at no more than `kSlackChecked` bytes on each side.
  Result<int64_t> check_slack() const;
  static constexpr size_t kSlackChecked = 4096;

 private:
  Mapping(const Driver& driver, size_t bytes, Layout layout)
      : driver_(&driver), bytes_(bytes), layout_(layout) {}
  Status map(int device, Access access);
  Status fill_slack(CUstream stream) const;
  CUdeviceptr pages() const { return base_ + layout_.fence; }

  const Driver* driver_;
  size_t bytes_ = 0;
  Layout layout_;
  CUdeviceptr base_ = 0;  // of the reservation; 0: none
  CUmemGenericAllocationHandle handle_ = 0;
  bool has_handle_ = false;
  bool mapped_ = false;
};

}  // namespace nereid::gpu
