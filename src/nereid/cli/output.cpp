#include "nereid/cli/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace nereid::cli {

Status write_stdout(std::string_view text) {
  const Status written = stream_stdout(text);
  if (!written.ok() && written.error().blame == Blame::kInterrupted) return ok_status();
  return written;
}

Status write_text(std::string_view text) { return write_stdout(printable(text, Lines::kMany)); }

std::string json_line(const Json& json) {
  return printable_json(json.dump(-1, ' ', false, Json::error_handler_t::replace)) + "\n";
}

Status can_be_written(const char* option, const std::string& path) {
  std::error_code failure;
  const auto folder = std::filesystem::absolute(path, failure).parent_path();
  if (std::filesystem::is_directory(path, failure))
    return input_error("{} {}: expected a file, got a folder", option, path);
  if (!std::filesystem::is_directory(folder, failure))
    return input_error("{} {}: there is no folder {}", option, path, folder.string());
  if (::access(folder.c_str(), W_OK) != 0)
    return input_error("{} {}: {}: {}", option, path, folder.string(), std::strerror(errno));
  return ok_status();
}

Status is_not(const char* option, const std::string& output, const std::string& input) {
  std::error_code absent;
  if (!std::filesystem::equivalent(output, input, absent)) return ok_status();
  return input_error("{} {}: expected another file than {}, which would be lost", option, output, input);
}

Terminal Terminal::of_stdout() {
  Terminal terminal;
  const char* columns = std::getenv("COLUMNS");
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (columns != nullptr && std::atoi(columns) > 0) terminal.width = std::atoi(columns);
  if (::isatty(STDOUT_FILENO) == 1) {
    terminal.terminal = true;
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) terminal.width = size.ws_col;
    terminal.colour =
        (no_colour == nullptr || *no_colour == '\0') && (term == nullptr || std::strcmp(term, "dumb") != 0);
  }
  terminal.width = std::clamp(terminal.width, 40, 400);
  return terminal;
}

std::string Terminal::styled(std::string_view code, std::string_view text) const {
  if (!colour) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

}  // namespace nereid::cli
