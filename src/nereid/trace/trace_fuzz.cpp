// libFuzzer over the trace reader: any bytes are an error or a sound trace that survives a round trip.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "nereid/base/check.h"
#include "nereid/base/json.h"
#include "nereid/trace/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nereid;
  const auto trace = trace::parse(std::string_view(reinterpret_cast<const char*>(data), size), "input");
  if (!trace.ok()) return 0;
  for (const trace::Value& value : trace->values) {
    const auto [first, last] = trace::byte_extent(value);
    NEREID_CHECK(
        first >= 0 && first <= last && last <= trace->storages[static_cast<size_t>(value.storage)].bytes,
        "a view inside its storage, got bytes {} to {}", first, last);
  }
  const std::string once = trace::serialize(*trace);
  const auto again = trace::parse(once, "what was just written");
  NEREID_CHECK(again.ok(), "a trace that can be read again, got: {}", again.error().message);
  NEREID_CHECK(trace::serialize(*again) == once, "the same bytes from the same trace");
  return 0;
}
