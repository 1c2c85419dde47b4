// A line of a batch as docs/batch_protocol.md says, read from bytes that may be anything.
//
// Programs write these lines, with text that models wrote: half of a surrogate pair, bytes that are no UTF-8,
// text cut in the middle. None of that may cost a line its id, for the program waits for a verdict under it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "nereid/base/json.h"
#include "nereid/base/result.h"
#include "nereid/verify/pair.h"

namespace nereid::verify {

inline constexpr size_t kMaxLineBytes = size_t{128}
                                        << 20;  // two texts of 8 MiB, each byte escaped, and some more
inline constexpr size_t kMaxIdBytes = size_t{64} << 10;  // of an id as it stands in the line

// JSON in which strings may hold any bytes: those that are no UTF-8 stay as they are, and an escape of half a
// surrogate pair becomes its three bytes (ED A0 80), which are no UTF-8 either. Everything else is as in RFC
// 8259, but a key may stand only once in an object.
struct LooseJson {
  Json value;
  std::string id;  // the bytes of the object's `id` as they stand in the line; empty where there is none
  std::string
      error;  // what was expected, with the place, where it is none; `id` may have been read all the same
};
LooseJson parse_loose_json(std::string_view text);

struct BatchLine {
  std::string id;  // as JSON: `"a"`, `7`, `{"step": 3}`; empty where none could be read
  Result<Pair> pair;
};

// `place` ("pairs.jsonl:3") names the line in errors; paths are relative to `folder`. A line that was longer
// than kMaxLineBytes comes cut, `cut`, and is an error.
BatchLine read_batch_line(std::string_view line, bool cut, const std::string& place,
                          const std::filesystem::path& folder);

// A JSON text of an id for an output line: the same bytes where they are UTF-8, else with what is none
// replaced.
std::string id_text(const std::string& id);

}  // namespace nereid::verify
