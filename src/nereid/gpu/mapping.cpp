#include "nereid/gpu/mapping.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace nereid::gpu {
namespace {

CUmemAllocationProp device_memory(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

Result<size_t> granularity_of(const Driver& driver, int device) {
  const CUmemAllocationProp properties = device_memory(device);
  size_t granularity = 0;
  NEREID_CUDA(driver,
              cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  return granularity;
}

}  // namespace

Layout lay_out(size_t bytes, size_t granularity, Placement placement) {
  NEREID_CHECK(granularity > 0 && granularity % Mapping::kAlignment == 0,
               "a granularity in units of 16, got {}", granularity);
  Layout layout;
  layout.mapped = std::max<size_t>(1, (bytes + granularity - 1) / granularity) * granularity;
  layout.fence = (Mapping::kFence + granularity - 1) / granularity * granularity;
  layout.reserved = layout.mapped + 2 * layout.fence;
  if (placement == Placement::kAtEnd)
    layout.offset = (layout.mapped - bytes) / Mapping::kAlignment * Mapping::kAlignment;
  return layout;
}

Result<Mapping> Mapping::create(const Driver& driver, int device, size_t bytes, Placement placement,
                                CUstream stream) {
  NEREID_TRY(const size_t granularity, granularity_of(driver, device));
  Mapping mapping(driver, bytes, lay_out(bytes, granularity, placement));
  const CUmemAllocationProp properties = device_memory(device);
  NEREID_CUDA(driver, cuMemCreate(&mapping.handle_, mapping.layout_.mapped, &properties, 0));
  mapping.has_handle_ = true;
  NEREID_TRY_STATUS(mapping.map(device, Access::kReadWrite));
  NEREID_TRY_STATUS(mapping.fill_slack(stream));
  return mapping;
}

Result<Mapping> Mapping::import(const Driver& driver, int device, const Fd& fd, size_t bytes,
                                Placement placement, Access access) {
  NEREID_TRY(const size_t granularity, granularity_of(driver, device));
  Mapping mapping(driver, bytes, lay_out(bytes, granularity, placement));
  void* os_handle = reinterpret_cast<void*>(static_cast<intptr_t>(fd.get()));
  NEREID_CUDA(driver, cuMemImportFromShareableHandle(&mapping.handle_, os_handle,
                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  mapping.has_handle_ = true;
  NEREID_TRY_STATUS(mapping.map(device, access));
  return mapping;
}

Status Mapping::map(int device, Access access) {
  NEREID_CUDA(*driver_, cuMemAddressReserve(&base_, layout_.reserved, 0, 0, 0));
  NEREID_CUDA(*driver_, cuMemMap(pages(), layout_.mapped, 0, handle_, 0));
  mapped_ = true;
  CUmemAccessDesc description{};
  description.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  description.location.id = device;
  description.flags =
      access == Access::kRead ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  NEREID_CUDA(*driver_, cuMemSetAccess(pages(), layout_.mapped, &description, 1));
  return ok_status();
}

Status Mapping::fill_slack(CUstream stream) const {
  const size_t after = layout_.mapped - layout_.offset - bytes_;
  if (layout_.offset > 0) NEREID_CUDA(*driver_, cuMemsetD8Async(pages(), kCanary, layout_.offset, stream));
  if (after > 0) NEREID_CUDA(*driver_, cuMemsetD8Async(data() + bytes_, kCanary, after, stream));
  return ok_status();
}

Result<int64_t> Mapping::check_slack() const {
  const size_t before = std::min(layout_.offset, kSlackChecked);
  const size_t after = std::min(layout_.mapped - layout_.offset - bytes_, kSlackChecked);
  std::vector<unsigned char> slack(before + after);
  if (before > 0) NEREID_CUDA(*driver_, cuMemcpyDtoH(slack.data(), data() - before, before));
  if (after > 0) NEREID_CUDA(*driver_, cuMemcpyDtoH(slack.data() + before, data() + bytes_, after));
  return std::count_if(slack.begin(), slack.end(), [](unsigned char byte) { return byte != kCanary; });
}

Result<Fd> Mapping::export_fd() const {
  int fd = -1;
  NEREID_CUDA(*driver_,
              cuMemExportToShareableHandle(&fd, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  return Fd(fd);
}

Mapping::Mapping(Mapping&& other) noexcept
    : driver_(other.driver_),
      bytes_(other.bytes_),
      layout_(other.layout_),
      base_(std::exchange(other.base_, 0)),
      handle_(other.handle_),
      has_handle_(std::exchange(other.has_handle_, false)),
      mapped_(std::exchange(other.mapped_, false)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(bytes_, other.bytes_);
  std::swap(layout_, other.layout_);
  std::swap(base_, other.base_);
  std::swap(handle_, other.handle_);
  std::swap(has_handle_, other.has_handle_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

Mapping::~Mapping() {
  // After a fault every call fails and the process is about to be replaced: nothing to do about it here.
  if (mapped_) driver_->cuMemUnmap(pages(), layout_.mapped);
  if (base_ != 0) driver_->cuMemAddressFree(base_, layout_.reserved);
  if (has_handle_) driver_->cuMemRelease(handle_);
}

}  // namespace nereid::gpu
