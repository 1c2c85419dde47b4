// The chat template that a checkpoint was trained with.
//
// Its template says it: chat_template.jinja, or `chat_template` in tokenizer_config.json. It is not run, but
// recognised by what only that family's has in it; one that is none of chat.h's is an error, rather than a
// prompt that the model never saw. A checkpoint that brings no template has Llama 3's of the first version
// where its tokenizer has Llama 3's marks and not Qwen's, else Qwen 3's: so are the models that are trained
// here.
#pragma once

#include <filesystem>
#include <string_view>

#include "nereid/base/result.h"
#include "nereid/lm/chat/chat.h"
#include "nereid/lm/tokenizer/tokenizer.h"

namespace nereid::lm {

// `what` names the file in errors.
Result<ChatTemplate> recognize_chat_template(std::string_view jinja, std::string_view what);
Result<ChatTemplate> read_chat_template(const std::filesystem::path& folder, const Tokenizer& tokenizer);

}  // namespace nereid::lm
