#include "nereid/skills/prompts.h"

#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/lm/chat/prompts.h"

namespace nereid::skills {
namespace {

namespace fs = std::filesystem;

Result<std::string> read_template(const fs::path& file, const std::map<std::string, std::string>& values) {
  NEREID_TRY(std::string text, read_file(file, size_t{1} << 20));
  NEREID_TRY([[maybe_unused]] const auto tried, lm::fill(text, values, file.string()));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

Result<Prompts> Prompts::load(const fs::path& folder, const fs::path& usual) {
  const auto place = [&](const char* name) {
    std::error_code ignored;
    return fs::exists(folder / name, ignored) ? folder / name : usual / name;
  };
  Prompts prompts;
  NEREID_TRY(prompts.guide, read_template(place("skills.md"), {{"skills", ""}}));
  if (std::error_code ignored; fs::exists(folder / "choose-skills.md", ignored)) {
    NEREID_TRY(prompts.choose, read_template(folder / "choose-skills.md",
                                             {{"name", ""}, {"source", ""}, {"skills", ""}, {"most", ""}}));
  }
  NEREID_TRY(prompts.learn,
             read_template(place("learn-skill.md"),
                           {{"source", ""}, {"slower", ""}, {"faster", ""}, {"speedup", ""}, {"facts", ""}}));
  prompts.hash = sha256_hex(sha256_hex(prompts.guide) + sha256_hex(prompts.choose));
  return prompts;
}

}  // namespace nereid::skills
