// libFuzzer over tokenizer.json: any text is an error or a tokenizer whose ids are its own, that finds each
// of its tokens again, and that decodes what it has encoded to something.
#include <cstdint>
#include <string_view>
#include <vector>

#include "nereid/base/check.h"
#include "nereid/lm/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nereid;
  using namespace nereid::lm;
  const auto tokenizer =
      Tokenizer::parse(std::string_view(reinterpret_cast<const char*>(data), size), "input");
  if (!tokenizer.ok()) return 0;
  Encoder encoder(*tokenizer);
  for (const std::string_view text : {"", "Hello  world\n\t1234 <|im_end|>he's",
                                      "e\xCC\x81 \xFF\xF0\x9F\x98\x80 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})
    for (const bool leave_special : {false, true}) {
      std::vector<TokenId> ids;
      // An expression of the file's own may give up.
      if (!encoder.encode(text, {.leave_special = leave_special}, ids).ok()) continue;
      for (const TokenId id : ids)
        NEREID_CHECK(id >= 0 && id < (*tokenizer)->size(), "an id below {}, got {}", (*tokenizer)->size(),
                     id);
      StreamDecoder stream(*tokenizer);
      std::string pieces;
      for (const TokenId id : ids) pieces += stream.push(id);
      pieces += stream.finish();
      NEREID_CHECK(pieces == (*tokenizer)->decode(ids), "the same text in pieces");
    }
  return 0;
}
