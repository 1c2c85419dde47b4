// How `--help` looks, of every program of Nereid's: CLI11's layout, with one empty line between groups of
// options, and the type of an option once: "INT in [1 - 9]" where CLI11 has "INT:INT in [1 - 9]".
#pragma once

#include <fmt/format.h>
#include <signal.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>

#include "nereid/base/program/command.h"
#include "nereid/base/program/standard_output.h"
#include "nereid/base/result.h"

namespace nereid {

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(34); }

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    auto text = CLI::Formatter::make_help(app, std::move(name), mode);
    for (size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
    return text;
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    auto text = CLI::Formatter::make_option_opts(option);
    const auto type = option->get_type_name();
    const auto colon = type.find(':'), at = text.find(type);
    if (colon == std::string::npos || at == std::string::npos) return text;
    const auto plain = type.substr(0, colon), check = type.substr(colon + 1);
    return text.replace(at, type.size(),
                        check == "POSITIVE"      ? plain + " > 0"
                        : check == "NONNEGATIVE" ? plain + " >= 0"
                                                 : check);
  }
};

// The exit code where a command line is not run: help and the version go to stdout, whole or with an error,
// what is wrong with the command line to stderr.
inline int exit_code_of(const CLI::App& app, const CLI::ParseError& end) {
  std::ostringstream text;
  if (app.exit(end, text, std::cerr) != 0) return exit_code(Blame::kInput);
  ::signal(SIGPIPE, SIG_IGN);
  const Status written = stream_stdout(text.str());
  if (written.ok() || written.error().blame == Blame::kInterrupted) return 0;  // the reader has gone
  fmt::print(stderr, "nereid: {}\n", written.error().message);
  return exit_code(written.error().blame);
}

}  // namespace nereid
