// An evaluation as one self-contained page, and as a table for a terminal.
#pragma once

#include <string>
#include <vector>

#include "nereid/eval/evaluation.h"

namespace nereid::eval {

struct About {
  std::string suite{}, hardware{}, versions{}, question{};
};
std::string html_page(const std::vector<TaskResult>& results, const Summary& summary, const About& about);
std::string text_table(const std::vector<TaskResult>& results, const Summary& summary);

}  // namespace nereid::eval
