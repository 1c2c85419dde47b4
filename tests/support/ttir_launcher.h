// Launches kernels by the executor of TTIR, on the CPU, every access checked.
#pragma once

#include <ATen/core/Tensor.h>

#include <bit>

#include "nereid/lm/engine/runner/kernels.h"
#include "nereid/ttir/exec/executor.h"

namespace nereid::lm {

class TtirLauncher : public Launcher {
 public:
  int arch() const override { return 0; }

  Result<size_t> load(std::vector<BuiltKernel> kernels) override {
    const size_t first = kernels_.size();
    for (const auto& kernel : kernels) {
      NEREID_TRY(auto loaded, ttir::Kernel::load(kernel.ttir));
      kernels_.push_back(std::move(loaded));
    }
    return first;
  }

  void launch(size_t kernel, const std::array<int64_t, 3>& grid,
              const std::vector<KernelArgument>& arguments) override {
    ttir::Launch launch{.grid = grid, .arguments = {}};
    std::vector<ttir::Buffer> buffers;
    const auto& parameters = kernels_[kernel].parameters();
    size_t parameter = 0;
    for (const auto& argument : arguments) {
      const bool described =
          parameter < parameters.size() && parameters[parameter].type.starts_with("!tt.tensordesc");
      parameter += described ? 5 : 1;  // its two sizes and two strides are parameters after it
      if (const auto* tensor = std::get_if<at::Tensor>(&argument)) {
        NEREID_CHECK(tensor->is_contiguous(), "contiguous tensors");
        const ttir::Pointer base{static_cast<int>(buffers.size()), 0};
        const int64_t rows = tensor->size(0), columns = rows == 0 ? 0 : tensor->numel() / rows;
        if (described)
          launch.arguments.push_back(
              ttir::Descriptor{.base = base, .shape = {rows, columns}, .strides = {columns, 1}});
        else
          launch.arguments.push_back(base);
        buffers.push_back({.data = static_cast<std::byte*>(tensor->data_ptr()),
                           .bytes = static_cast<int64_t>(tensor->nbytes()),
                           .name = fmt::format("argument {}", buffers.size()),
                           .element_bytes = static_cast<int64_t>(tensor->element_size())});
      } else if (const auto* number = std::get_if<int32_t>(&argument)) {
        launch.arguments.push_back(ttir::Scalar{static_cast<uint32_t>(*number)});
      } else if (const auto* large = std::get_if<int64_t>(&argument)) {
        launch.arguments.push_back(ttir::Scalar{static_cast<uint64_t>(*large)});
      } else {
        launch.arguments.push_back(ttir::Scalar{std::bit_cast<uint32_t>(std::get<float>(argument))});
      }
    }
    const auto report = kernels_[kernel].run(launch, buffers);
    NEREID_CHECK(report.ok(), "a launch that fits, got {}", report.error().message);
    NEREID_CHECK(report->ok(), "a launch without findings, got {}",
                 report->findings.empty() ? "" : report->findings[0].sentence);
    ++launches;
  }

  int launches = 0;

 private:
  std::vector<ttir::Kernel> kernels_;
};

}  // namespace nereid::lm
