#include "nereid/lm/chat/prompts.h"

#include <algorithm>

#include "nereid/base/file.h"
#include "nereid/base/hash.h"

namespace nereid::lm {

namespace {

std::string without(std::string text, const std::string& part, const std::string& instead) {
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += instead.size())
    text.replace(at, part.size(), instead);
  return text;
}

// compiler/output/trace_summary.h says what is left out.
std::string without_given_sizes(const std::string& steps) {
  const size_t begin = steps.starts_with("given ") ? steps.find('\n') : steps.npos;
  const std::string calls = begin == steps.npos ? steps : steps.substr(begin + 1);
  return without(without(calls, ", keepdim) [", ") ["), ", transposed) [", ") [");
}

}  // namespace

Result<std::string> fill(const std::string& text, const std::map<std::string, std::string>& values,
                         const std::string& what) {
  std::string out;
  size_t at = 0;
  while (true) {
    const size_t open = text.find("{{", at);
    const size_t close = open == text.npos ? text.npos : text.find("}}", open);
    if (close == text.npos) return out + text.substr(at);
    const std::string key = text.substr(open + 2, close - open - 2);
    const auto value = values.find(key);
    if (value == values.end())
      return input_error("{}:{}: unknown placeholder '{{{{{}}}}}'", what,
                         1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(open), '\n'),
                         key);
    out += text.substr(at, open - at) + value->second;
    at = close + 2;
  }
}

Result<Prompts> Prompts::load(const std::filesystem::path& folder) {
  Prompts prompts;
  NEREID_TRY(prompts.system, read_file(folder / "system.md", size_t{1} << 20));
  NEREID_TRY(prompts.task, read_file(folder / "task.md", size_t{1} << 20));
  NEREID_TRY(prompts.repair, read_file(folder / "repair.md", size_t{1} << 20));
  NEREID_TRY(auto tried, fill(prompts.task, {{"name", ""}, {"source", ""}}, (folder / "task.md").string()));
  NEREID_TRY(tried, fill(prompts.repair, {{"evidence", ""}}, (folder / "repair.md").string()));
  std::string hashes = sha256_hex(prompts.system) + sha256_hex(prompts.task) + sha256_hex(prompts.repair);
  const auto read_prefill = [&](const std::filesystem::path& file, std::string& into) -> Result<bool> {
    if (std::error_code ignored; !std::filesystem::exists(file, ignored)) return false;
    NEREID_TRY(into, read_file(file, size_t{1} << 20));
    while (into.ends_with('\n')) into.pop_back();
    NEREID_TRY(tried, fill(into, {{"steps", ""}, {"calls", ""}}, file.string()));
    if (!into.empty()) hashes += sha256_hex(into);
    return !into.empty();
  };
  NEREID_TRY(bool more, read_prefill(folder / "prefill.md", prompts.prefill));
  for (int number = 1; more; ++number) {
    std::string other;
    NEREID_TRY(more, read_prefill(folder / fmt::format("prefill-{}.md", number), other));
    if (more) prompts.otherwise.push_back(std::move(other));
  }
  prompts.hash = sha256_hex(hashes);
  return prompts;
}

Result<std::vector<std::string>> Prompts::prefills_for(const std::string& steps) const {
  std::vector<std::string> prefills;
  if (prefill.empty() || steps.empty()) return prefills;
  const std::string text = steps.substr(0, steps.find_last_not_of('\n') + 1);
  const std::map<std::string, std::string> values = {{"steps", text}, {"calls", without_given_sizes(text)}};
  NEREID_TRY(prefills.emplace_back(), fill(prefill, values, "prefill.md"));
  for (const std::string& other : otherwise) {
    NEREID_TRY(prefills.emplace_back(),
               fill(other, values, fmt::format("prefill-{}.md", prefills.size() - 1)));
  }
  return prefills;
}

Result<std::string> Prompts::prefill_for(const std::string& steps) const {
  NEREID_TRY(auto prefills, prefills_for(steps));
  return prefills.empty() ? std::string() : std::move(prefills.front());
}

Result<std::vector<ChatMessage>> Prompts::ask(const std::string& name, const std::string& source) const {
  NEREID_TRY(auto asked, fill(task, {{"name", name}, {"source", source}}, "task.md"));
  std::vector<ChatMessage> messages;
  if (!system.empty()) messages.push_back({.role = "system", .content = system});
  messages.push_back({.role = "user", .content = std::move(asked)});
  return messages;
}

Result<std::vector<ChatMessage>> Prompts::repair_messages(const std::string& name, const std::string& source,
                                                          const std::vector<WrongAnswer>& wrong) const {
  NEREID_TRY(auto messages, ask(name, source));
  for (const WrongAnswer& each : wrong) {
    NEREID_TRY(std::string said, fill(repair, {{"evidence", each.evidence}}, "repair.md"));
    messages.push_back({.role = "assistant", .content = each.text});
    messages.push_back({.role = "user", .content = std::move(said)});
  }
  return messages;
}

std::filesystem::path prompts_of(const std::filesystem::path& model, const std::filesystem::path& usual) {
  std::error_code ignored;
  return std::filesystem::exists(model / "prompts", ignored) ? model / "prompts" : usual;
}

}  // namespace nereid::lm
