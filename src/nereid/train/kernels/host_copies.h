// Copies of a device's tensors on the host that overlap with whatever the device does next.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <optional>

namespace nereid::train {

// On CUDA into pinned memory, in a stream of their own; elsewhere at once.
class HostCopies {
 public:
  explicit HostCopies(at::Device device) : device_(device) {}

  // Between these two: what was queued before `begin` comes before the copies.
  void begin();
  // `to` becomes of `from`'s size and type where it is undefined. `from` lives on, and does not change before
  // `hold`.
  void copy(at::Tensor& to, const at::Tensor& from);
  void end();

  // This thread waits for all that the device was given so far.
  void settle() const;

  // What the device is given from now on waits for the copies: to be called before their sources change.
  void hold();
  // This thread waits for them; any thread may.
  void wait() const;

 private:
  at::Device device_;
  std::optional<c10::Stream> own_, before_;
  std::optional<c10::Event> done_;
};

}  // namespace nereid::train
