// An evaluation as one self-contained page, and as a table for a terminal.
#pragma once

#include <string>
#include <vector>

#include "nereid/eval/evaluation.h"

namespace nereid::eval {

struct About {
  std::string suite{}, hardware{}, versions{}, question{};
};
// By baseline: tasks on which it was stopped at its time limit.
std::map<std::string, int64_t> timed_out(const std::vector<TaskResult>& results);
std::string html_page(const std::vector<TaskResult>& results, const Summary& summary, const About& about);
std::string text_table(const std::vector<TaskResult>& results, const Summary& summary);

}  // namespace nereid::eval
