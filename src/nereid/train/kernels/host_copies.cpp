#include "nereid/train/kernels/host_copies.h"

#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace nereid::train {
namespace {

c10::Stream current_stream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

void HostCopies::begin() {
  if (!device_.is_cuda()) return;
  const c10::impl::VirtualGuardImpl device(device_.type());
  if (!own_) own_ = device.getStreamFromGlobalPool(device_);
  before_ = current_stream(device_);
  c10::Event ready(device_.type());
  ready.record(*before_);
  ready.block(*own_);
  device.exchangeStream(*own_);
}

void HostCopies::copy(at::Tensor& to, const at::Tensor& from) {
  if (!to.defined())
    to = at::empty(from.sizes(), from.options().device(at::kCPU).pinned_memory(device_.is_cuda()));
  to.copy_(from, /*non_blocking=*/true);
}

void HostCopies::end() {
  if (!device_.is_cuda()) return;
  done_.emplace(device_.type());
  done_->record(*own_);
  c10::impl::VirtualGuardImpl(device_.type()).exchangeStream(*before_);
}

void HostCopies::settle() const {
  if (device_.is_cuda()) current_stream(device_).synchronize();
}

void HostCopies::hold() {
  if (done_) done_->block(current_stream(device_));
}

void HostCopies::wait() const {
  if (done_) done_->synchronize();
}

}  // namespace nereid::train
