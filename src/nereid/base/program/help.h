// How `--help` looks, of every program of Nereid's: CLI11's layout, with one empty line between groups of
// options, and the type of an option once: "INT in [1 - 9]" where CLI11 has "INT:INT in [1 - 9]".
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <utility>

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

}  // namespace nereid
