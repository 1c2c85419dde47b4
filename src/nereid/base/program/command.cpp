#include "nereid/base/program/command.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>

#include "nereid/base/json.h"
#include "nereid/base/printable.h"
#include "nereid/base/program/interrupt.h"

namespace nereid {
namespace {

int report(const Error& error, bool json) {
  fmt::print(stderr, "nereid: {}\n", printable(error.message, Lines::kMany));
  if (json) {
    const char* blame = error.blame == Blame::kInput  ? "input"
                        : error.blame == Blame::kOurs ? "ours"
                                                      : "interrupted";
    const Json document = {{"error", {{"message", error.message}, {"blame", blame}}}};
    const std::string text =
        printable_json(document.dump(-1, ' ', false, Json::error_handler_t::replace)) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  return exit_code(error.blame);
}

// A path that cannot be followed (a loop of links, a folder without permission) is the input's fault, a full
// or broken disk is not.
Error error_of(const std::filesystem::filesystem_error& failure) {
  const auto& code = failure.code();
  const bool ours = code == std::errc::no_space_on_device || code == std::errc::io_error ||
                    code == std::errc::too_many_files_open ||
                    code == std::errc::too_many_files_open_in_system;
  return Error{fmt::format("{}: {}", failure.path1().string(), code.message()),
               ours ? Blame::kOurs : Blame::kInput};
}

}  // namespace

int exit_code(Blame blame) {
  switch (blame) {
    case Blame::kInput:
      return 2;
    case Blame::kOurs:
      return 3;
    case Blame::kInterrupted:
      return 130;
  }
  return 3;
}

int run_to_exit_code(const Chosen& chosen) {
  watch_for_interrupts();
  try {
    const auto answer = chosen.run();
    if (answer.ok()) return static_cast<int>(*answer);
    // An interrupt that can say how to go on says so; what else goes wrong then is its doing.
    if (interrupted() && answer.error().blame != Blame::kInterrupted)
      return report(Error{"interrupted", Blame::kInterrupted}, chosen.json);
    return report(answer.error(), chosen.json);
  } catch (const std::filesystem::filesystem_error& e) {
    return report(error_of(e), chosen.json);
  } catch (const std::exception& e) {
    const std::string what = e.what();
    return report(Error{fmt::format("unexpected: {}", what.substr(0, what.find('\n'))), Blame::kOurs},
                  chosen.json);
  }
}

}  // namespace nereid
