// Comments and docstrings of a sampled program (prose.h), as often as its style has them.
#pragma once

#include <string>

#include "nereid/synth/write/code_style.h"
#include "nereid/synth/write/prose.h"

namespace nereid::synth {

class Commentary {
 public:
  explicit Commentary(const CodeStyle& style) : written_(style.prose != 0), prose_(style.prose) {}

  // Whether there is prose at this place: once in `one_in` times.
  bool says(uint32_t one_in) { return written_ && prose_.one_in(one_in); }
  // Lines of comments.
  void comments(const char* indent, uint32_t one_in, std::string& to);
  // At the end of a line.
  void remark(uint32_t one_in, std::string& to);
  void docstring(const char* indent, std::string& to);
  // Before the imports.
  void file_prose(std::string& to);
  Prose& prose() { return prose_; }

 private:
  const bool written_;
  Prose prose_;
};

}  // namespace nereid::synth
