// libFuzzer over safetensors files: any bytes are an error or tensors that are in them, one after the other,
// each with the bytes that its dtype and shape ask for.
#include <cstdint>
#include <span>

#include "nereid/base/check.h"
#include "nereid/lm/checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nereid;
  using namespace nereid::lm;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto content = parse_safetensors(bytes, "input");
  if (!content.ok()) return 0;
  size_t covered = 0;
  for (const auto& [name, view] : content->tensors) {
    const TensorInfo info{.name = name, .dtype = view.dtype, .shape = view.shape};
    NEREID_CHECK(view.bytes.size() == info.bytes(), "{} bytes, got {}", info.bytes(), view.bytes.size());
    if (view.bytes.empty()) continue;
    NEREID_CHECK(view.bytes.data() >= bytes.data() &&
                     view.bytes.data() + view.bytes.size() <= bytes.data() + bytes.size(),
                 "a tensor within the file, got {} bytes at {}", view.bytes.size(),
                 view.bytes.data() - bytes.data());
    covered += view.bytes.size();
  }
  NEREID_CHECK(covered <= size, "at most {} bytes, got {}", size, covered);
  return 0;
}
