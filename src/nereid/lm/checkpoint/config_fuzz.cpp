// libFuzzer over config.json: any text is an error or a configuration that survives a round trip, and whose
// number of parameters can be computed.
#include <cstdint>
#include <string_view>

#include "nereid/base/check.h"
#include "nereid/lm/checkpoint/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nereid;
  using namespace nereid::lm;
  const auto document = parse_json(std::string_view(reinterpret_cast<const char*>(data), size), "input");
  if (!document.ok()) return 0;
  const auto config = parse_config(*document, "input");
  if (!config.ok()) return 0;
  NEREID_CHECK(config->parameter_count() > 0, "a number of parameters, got {}", config->parameter_count());
  const auto again = parse_config(to_json(*config), "what was just written");
  NEREID_CHECK(again.ok(), "a configuration that can be read again, got: {}", again.error().message);
  NEREID_CHECK(*again == *config, "the same configuration: {}", to_json(*config).dump());
  return 0;
}
