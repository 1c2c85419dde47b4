// What two versions of a run file differ in, key by key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::train {

struct KeyChange {
  std::string key;            // "rl.samples"
  std::string before, after;  // as TOML; empty: the key is not there
  bool operator==(const KeyChange&) const = default;
};

// By keys; comments, order and spelling of numbers are no changes. What is no TOML is an error (blamed on the
// input) that begins with its name.
Result<std::vector<KeyChange>> run_file_changes(std::string_view before, const std::string& before_name,
                                                std::string_view after, const std::string& after_name);

// "rl.samples: 8, now 16"
std::string to_string(const KeyChange& change);

}  // namespace nereid::train
