// Standard output as a command uses it: data, whole, or an error; and what the terminal can show.
#pragma once

#include <string>
#include <string_view>

#include "nereid/base/json.h"
#include "nereid/base/printable.h"
#include "nereid/base/program/standard_output.h"
#include "nereid/base/result.h"

namespace nereid::cli {

// All of `text` to stdout, flushed. A reader that has gone away (EPIPE, as with `| head`) is no error.
Status write_stdout(std::string_view text);
// The same for a person, without colours: what the text quotes of others is made printable.
Status write_text(std::string_view text);
using nereid::stream_stdout;  // one of many: where the reader has gone, there is no sense in making more
// One line that a program reads; what is no UTF-8 in it is replaced.
std::string json_line(const Json& json);

// Before the work, not after it: an error where a file of this name cannot be made, because it is a folder or
// its folder is missing or not writable.
Status can_be_written(const char* option, const std::string& path);

// An error where an option's file is one that is read, under whatever name: it would be lost.
Status is_not(const char* option, const std::string& output, const std::string& input);

struct Terminal {
  int width = 100;        // columns; 100 where stdout is no terminal and COLUMNS says nothing
  bool terminal = false;  // where not, nothing needs to be cut short
  bool colour = false;    // stdout is a terminal, NO_COLOR is unset and TERM is not "dumb"

  static Terminal of_stdout();

  // `text` in the given style where colours are shown, else as it is.
  std::string bold(std::string_view text) const { return styled("1", text); }
  std::string dim(std::string_view text) const { return styled("2", text); }
  std::string green(std::string_view text) const { return styled("32", text); }
  std::string styled(std::string_view code, std::string_view text) const;
};

}  // namespace nereid::cli
