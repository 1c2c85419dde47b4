// The file that a search hands out: the winning candidate under a header that says what is known of it.
#pragma once

#include <string>

#include "nereid/search/baselines.h"
#include "nereid/search/evaluator.h"
#include "nereid/search/judged.h"

namespace nereid::search {

struct Provenance {
  std::string program{};    // "nereid 0.1.0"
  std::string reference{};  // the file's name
  std::string hardware{};
  std::string versions{};
  const Judged* compiled = nullptr;  // torch.compile's kernels, where they were measured
  Baselines baselines{};
  std::string assumptions{};  // where the file holds: shapes, dtypes, constructor, mode
};

// Comments (each line begins with "# "), then the candidate as it was judged.
std::string result_file(const Task& task, const Judged& best, const Provenance& provenance);

// "1.83 times eager PyTorch (0.412 ms against 0.753 ms)": measured, or said to be modelled.
std::string speed_text(const Task& task, const Judged& judged);
std::string milliseconds_text(double ms);  // "12.3 us"

}  // namespace nereid::search
