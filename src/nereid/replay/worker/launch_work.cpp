#include "nereid/replay/worker/launch_work.h"

#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace nereid::replay {
namespace {

constexpr double kMaxSeconds = 5;
constexpr int kMaxRounds = 4;
constexpr size_t kPage = 4096;

// Zeros that take no memory until they are touched.
class Pages {
 public:
  explicit Pages(int64_t bytes) : bytes_(static_cast<size_t>(std::max<int64_t>(bytes, 1))) {
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data_ == MAP_FAILED) throw std::bad_alloc();
  }
  Pages(Pages&& other) noexcept : data_(std::exchange(other.data_, MAP_FAILED)), bytes_(other.bytes_) {}
  Pages& operator=(Pages&&) = delete;
  ~Pages() {
    if (data_ != MAP_FAILED) munmap(data_, bytes_);
  }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  // Which pages have been read or written.
  std::vector<unsigned char> touched() const {
    std::vector<unsigned char> pages((bytes_ + kPage - 1) / kPage);
    if (mincore(data_, bytes_, pages.data()) != 0) std::ranges::fill(pages, 0);
    for (auto& page : pages) page &= 1;
    return pages;
  }

 private:
  void* data_ = MAP_FAILED;
  size_t bytes_;
};

// One buffer on the host: all of it, or those of its pages that a run before has touched.
class HostCopy {
 public:
  HostCopy(const at::Tensor& bytes, bool whole) : bytes_(bytes), whole_(whole) {
    known_.resize((static_cast<size_t>(bytes.numel()) + kPage - 1) / kPage, whole);
  }

  std::byte* fill() {
    pages_.reset();
    pages_.emplace(bytes_.numel());
    if (whole_) {
      copy(0, bytes_.numel());
      return pages_->data();
    }
    for (size_t first = 0; first < known_.size();) {
      size_t end = first;
      while (end < known_.size() && known_[end] != 0) ++end;
      if (end > first)
        copy(static_cast<int64_t>(first * kPage),
             std::min<int64_t>(static_cast<int64_t>(end * kPage), bytes_.numel()));
      first = end + 1;
    }
    return pages_->data();
  }
  // Whether the run touched pages that held zeros for what they hold.
  bool missed() {
    if (whole_) return false;
    bool any = false;
    const auto touched = pages_->touched();
    for (size_t page = 0; page < known_.size(); ++page) {
      any |= touched[page] != 0 && known_[page] == 0;
      known_[page] |= touched[page];
    }
    return any;
  }

 private:
  void copy(int64_t first, int64_t end) {
    if (end <= first) return;
    at::from_blob(pages_->data() + first, {end - first}, at::TensorOptions().dtype(at::kByte))
        .copy_(bytes_.narrow(0, first, end - first));
  }

  const at::Tensor bytes_;
  const bool whole_;
  std::vector<unsigned char> known_;
  std::optional<Pages> pages_;
};

}  // namespace

std::optional<ttir::Work> launch_work(const trace::Trace& trace, const LaunchRequest& request,
                                      const std::vector<at::Tensor>& bytes, int64_t max_copied) {
  auto kernel = ttir::Kernel::load(trace.kernels[request.alternative->kernel].ttir);
  if (!kernel.ok() || !kernel->moves_by_data()) return std::nullopt;
  std::vector<size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t b) { return bytes[b].numel(); });
  std::vector<HostCopy> copies;
  for (const size_t b : order) {
    const int64_t size = bytes[b].numel();
    copies.emplace_back(bytes[b], size <= max_copied);
    if (size <= max_copied) max_copied -= size;
  }
  std::optional<ttir::Work> work;
  for (int round = 0; round < kMaxRounds; ++round) {
    std::vector<ttir::Buffer> buffers(bytes.size());
    for (size_t k = 0; k < order.size(); ++k)
      buffers[order[k]] = {.data = copies[k].fill(),
                           .bytes = bytes[order[k]].numel(),
                           .name = std::string(request.buffers[order[k]].name)};
    const auto counted = kernel->count({request.alternative->grid, request.arguments}, buffers, kMaxPrograms,
                                       Deadline::after(kMaxSeconds));
    if (!counted.ok()) return std::nullopt;
    work = *counted;
    bool missed = false;
    for (auto& copy : copies) missed = copy.missed() || missed;
    if (!missed) break;
  }
  return work;
}

}  // namespace nereid::replay
