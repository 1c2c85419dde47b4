// Every key of a run file, for `nereid train keys` and docs/run_files.md. The list comes from the readers
// themselves (run_file.cpp, rl_file.cpp), which read sample files of every kind; a key without a description
// fails a test.
#pragma once

#include <string>
#include <vector>

namespace nereid::train {

struct RunFileKey {
  std::string path;       // "rl.samples"
  std::string type;       // "integer from 2 to 65536"
  std::string initial;    // the default as TOML; empty: none
  std::string run;        // "sft", "rl", or "both"
  std::string condition;  // where it is read, as `rl.objective = "drpo"`; empty: always
  std::string unit;       // "tokens", "seconds"; empty: a share, a name, a flag
  std::string meaning;    // one line
};

// In the order in which the readers look keys up.
std::vector<RunFileKey> run_file_keys();

}  // namespace nereid::train
