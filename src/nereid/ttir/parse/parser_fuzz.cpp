// libFuzzer: any text is parsed, verified, lowered and, where it is a kernel, run for a moment on small
// buffers.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "nereid/ttir/exec/executor.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nereid::ttir;
  const auto kernel = Kernel::load(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!kernel) return 0;
  std::vector<std::byte> memory(4096);
  std::vector<uint8_t> written(512, 0x55);
  std::vector<Buffer> buffers(1);
  buffers[0].data = memory.data();
  buffers[0].bytes = 4096;
  buffers[0].written = written.data();
  Launch launch;
  launch.grid = {3, 1, 1};
  for (const Parameter& p : kernel->parameters()) {
    if (p.type.rfind("!tt.ptr", 0) == 0)
      launch.arguments.emplace_back(Pointer{0, 16});
    else if (p.type.rfind("!tt.tensordesc", 0) == 0)
      return 0;
    else
      launch.arguments.emplace_back(Scalar{0x11});
  }
  RunOptions options;
  options.deadline = nereid::Deadline::after(0.05);
  (void)kernel->run(launch, buffers, options);
  return 0;
}
