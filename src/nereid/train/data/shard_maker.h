// Lines of JSON into a folder of token shards: several threads, and again from where it stopped.
#pragma once

#include <functional>

#include "nereid/lm/tokenizer/tokenizer.h"
#include "nereid/train/data/examples.h"
#include "nereid/train/data/token_set.h"

namespace nereid::train {

struct ShardMakerSettings {
  std::vector<std::string> inputs;  // files of lines
  std::filesystem::path folder;
  std::string tokenizer;  // its file
  ExampleSettings examples;
  std::string asked_with;           // what `examples.ask` depends on: with another, the folder is another's
  int64_t longest = 32'768;         // tokens of a document; longer ones are left out
  uint64_t shard_tokens = 1 << 26;  // a shard is closed when it has so many
  int threads = 0;                  // 0: one a core
  // Called now and then with the bytes read so far, of all.
  std::function<void(uint64_t bytes, uint64_t of)> report = {};
};

struct ShardSummary {
  ShardList list;
  uint64_t resumed_shards = 0;  // that were there already
};

// Conversations are written by the chat template of the tokenizer's folder (lm/chat/chat_template.h), which
// sets `examples.chat`. The shards depend on the inputs and settings alone, not on threads, nor on how often
// it was interrupted. After each shard the list says where the input goes on. An error (blamed on the input)
// names file and line of what cannot be read; a folder that was made otherwise is one. Ctrl-C is an error
// with Blame::kInterrupted.
Result<ShardSummary> make_shards(ShardMakerSettings settings);

}  // namespace nereid::train
