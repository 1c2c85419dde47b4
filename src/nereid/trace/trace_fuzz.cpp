// libFuzzer over the trace reader: any bytes are an error or a sound trace that survives a round trip, and
// that everything which walks traces can walk.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "nereid/base/check.h"
#include "nereid/base/json.h"
#include "nereid/trace/cost.h"
#include "nereid/trace/dataflow.h"
#include "nereid/trace/format/codec.h"
#include "nereid/trace/notation.h"

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
  for (const trace::Phase& phase : trace->phases) {
    trace::costs_of(*trace, phase, {});
    trace::follow(*trace, phase, {});
    for (const trace::Step& step : phase.steps) {
      const auto* call = std::get_if<trace::Call>(&step);
      const std::string text = call != nullptr ? trace::call_text(*trace, *call)
                                               : trace::launch_text(*trace, std::get<trace::Launch>(step));
      NEREID_CHECK(text.find('\x1b') == text.npos, "text that is safe for a terminal, got: {}", text);
    }
  }
  return 0;
}
