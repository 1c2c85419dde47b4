#include "nereid/mutate/subject.h"

#include <map>
#include <sstream>

#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "nereid/trace/format/codec.h"

namespace nereid::mutate {

Status save_subjects(const std::vector<Subject>& subjects, const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return input_error("{}: {}", folder.string(), failure.message());
  std::map<const trace::Trace*, std::string> names;
  const auto name_of = [&](const trace::Trace& trace) -> Result<std::string> {
    auto& name = names[&trace];
    if (!name.empty()) return name;
    name = sha256_hex(trace::serialize(trace)).substr(0, 24) + ".trace";
    if (!std::filesystem::exists(folder / name)) NEREID_TRY_STATUS(trace::save(trace, folder / name));
    return name;
  };
  std::string lines;
  for (const auto& subject : subjects) {
    NEREID_TRY(const auto reference, name_of(*subject.reference));
    NEREID_TRY(const auto candidate, name_of(*subject.candidate));
    lines += Json{{"id", subject.id},
                  {"policy", subject.policy},
                  {"mutated", subject.mutated},
                  {"reference", reference},
                  {"candidate", candidate}}
                 .dump() +
             "\n";
  }
  return write_file_atomically(folder / kSubjectsFile, lines);
}

Result<std::vector<Subject>> load_subjects(const std::filesystem::path& folder) {
  NEREID_TRY(const auto text, read_file(folder / kSubjectsFile));
  std::map<std::string, std::shared_ptr<const trace::Trace>> traces;
  const auto trace_of = [&](const std::string& name) -> Result<std::shared_ptr<const trace::Trace>> {
    auto& trace = traces[name];
    if (!trace) {
      NEREID_TRY(auto loaded, trace::load(folder / name));
      trace = std::make_shared<const trace::Trace>(std::move(loaded));
    }
    return trace;
  };
  std::vector<Subject> subjects;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string what = fmt::format("{}:{}", (folder / kSubjectsFile).string(), subjects.size() + 1);
    NEREID_TRY(const auto json, parse_json(line, what));
    Subject subject;
    try {
      subject.id = json.at("id").get<std::string>();
      subject.policy = json.value("policy", "");
      subject.mutated = json.value("mutated", true);
      NEREID_TRY(subject.reference, trace_of(json.at("reference").get<std::string>()));
      NEREID_TRY(subject.candidate, trace_of(json.at("candidate").get<std::string>()));
    } catch (const nlohmann::json::exception& e) {
      return input_error("{}: {}", what, e.what());
    }
    subjects.push_back(std::move(subject));
  }
  return subjects;
}

}  // namespace nereid::mutate
