#include "nereid/synth/write/commentary.h"

#include "nereid/synth/write/body.h"

namespace nereid::synth {

void Commentary::comments(const char* indent, uint32_t one_in, std::string& to) {
  if (!says(one_in)) return;
  for (uint32_t lines = 1 + prose_.below(2); lines > 0; --lines)
    append(to, "{}# {}\n", indent, prose_.sentence());
}

void Commentary::remark(uint32_t one_in, std::string& to) {
  if (says(one_in)) append(to, "  # {}", prose_.remark());
}

void Commentary::docstring(const char* indent, std::string& to) {
  const uint32_t sentences = prose_.below(3);
  if (sentences == 0) {
    append(to, "{}\"\"\"{}\"\"\"\n", indent, prose_.sentence());
    return;
  }
  const bool begins = prose_.one_in(2);  // in a line of its own
  append(to, "{}\"\"\"{}", indent, begins ? fmt::format("\n{}", indent) : "");
  to += prose_.sentence();
  for (uint32_t i = 0; i < sentences; ++i)
    append(to, "\n{}{}{}", prose_.one_in(2) ? "\n" : "", indent, prose_.sentence());
  append(to, "\n{}\"\"\"\n", indent);
}

void Commentary::file_prose(std::string& to) {
  comments("", 8, to);
  if (says(5)) {
    docstring("", to);
    if (prose_.one_in(2)) to += '\n';
  }
}

}  // namespace nereid::synth
