#include "nereid/mutate/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "nereid/base/file.h"
#include "nereid/base/program/included_files.h"
#include "nereid/dataset/variants.h"
#include "nereid/synth/sample/maker.h"

namespace nereid::mutate {
namespace {

constexpr double kTraceSeconds = 60;
constexpr uint32_t kVariantStream = 2;
constexpr int kMaxAttempts = 400;  // program numbers that are tried for one that can be lowered
const char* const kTaskFile = "model.py";
const char* const kAnswerFile = "model_new.py";

struct Header {
  std::string reference, policy, verdict;
};

// The `key: value` lines at the start of a file, within its docstring.
Header header_of(const std::string& text) {
  Header header;
  std::istringstream lines(text);
  std::string line;
  int quotes = 0;
  while (std::getline(lines, line) && quotes < 2) {
    for (size_t at = line.find("\"\"\""); at != std::string::npos; at = line.find("\"\"\"", at + 3)) ++quotes;
    for (auto [key, value] : {std::pair{"reference: ", &header.reference},
                              std::pair{"policy: ", &header.policy}, std::pair{"verdict: ", &header.verdict}})
      if (line.starts_with(key)) *value = line.substr(std::string(key).size());
  }
  return header;
}

Result<std::shared_ptr<const trace::Trace>> trace_of(Result<tracer::TraceAnswer> answer,
                                                     const std::string& what) {
  if (!answer.ok()) return answer.error();
  if (auto* trace = std::get_if<trace::Trace>(&*answer))
    return std::make_shared<const trace::Trace>(std::move(*trace));
  if (const auto* u = std::get_if<tracer::Untraceable>(&*answer))
    return input_error("{} cannot be traced: {}: {}", what, u->type, u->message);
  return input_error("{} cannot be traced", what);
}

Result<std::vector<Subject>> subjects_of_file(tracer::Tracer& tracer, const std::string& id,
                                              const std::filesystem::path& candidate,
                                              const std::filesystem::path& reference,
                                              const PairReader& reader, const std::string& policy,
                                              uint64_t draw, Deadline deadline) {
  NEREID_TRY(const auto reference_text, reader.reference(reference));
  NEREID_TRY(auto candidate_text, reader.candidate(candidate));
  Subject subject{.id = id, .policy = policy, .reference = nullptr, .candidate = nullptr};
  tracer::TraceRequest request{.source = reference_text,
                               .path = reference.filename().string(),
                               .class_name = "Model",
                               .draw = draw,
                               .seconds = kTraceSeconds};
  NEREID_TRY(subject.reference, trace_of(tracer.trace(request, deadline), reference.string()));
  request.source = with_files_of(std::move(candidate_text), reference_text);
  request.path = candidate.filename().string(), request.class_name = "ModelNew";
  request.reference = subject.reference.get();
  NEREID_TRY(subject.candidate, trace_of(tracer.trace(request, deadline), candidate.string()));
  return std::vector{std::move(subject)};
}

Source file_source(tracer::Tracer& tracer, const std::filesystem::path& candidate,
                   const std::filesystem::path& reference, const PairReader& reader,
                   const std::string& policy, uint64_t seed) {
  const std::string id = candidate.parent_path().filename().string() + "/" + candidate.stem().string();
  return {id, [=, &tracer](Deadline deadline) {
            return subjects_of_file(tracer, id, candidate, reference, reader, policy, seed & 0x7fffffff,
                                    deadline);
          }};
}

Result<std::vector<Subject>> subjects_of_program(tracer::Tracer& tracer, const synth::Made& made,
                                                 const std::string& id, int variants, uint64_t seed,
                                                 Deadline deadline) {
  tracer::TraceRequest request{.source = made.code,
                               .path = kTaskFile,
                               .class_name = "Model",
                               .draw = seed & 0x7fffffff,
                               .seconds = kTraceSeconds};
  NEREID_TRY(const auto reference, trace_of(tracer.trace(request, deadline), id));
  synth::Rng rng(seed, made.index, kVariantStream);
  NEREID_TRY(const auto lowered, dataset::variants_of(*reference, made.code, rng, variants));
  std::vector<tracer::TraceRequest> requests;
  for (const auto& variant : lowered)
    requests.push_back({.source = variant.module.text,
                        .path = kAnswerFile,
                        .class_name = "ModelNew",
                        .draw = request.draw,
                        .reference = reference.get(),
                        .seconds = kTraceSeconds});
  NEREID_TRY(auto answers, tracer.trace_several(requests, deadline));
  std::vector<Subject> subjects;
  for (size_t v = 0; v < answers.size(); ++v) {
    Subject subject{.id = fmt::format("{}-v{}", id, v),
                    .policy = lowered[v].module.kept.empty() ? "strict" : "hybrid",
                    .mutated = v == 0,
                    .reference = reference,
                    .candidate = nullptr};
    NEREID_TRY(subject.candidate, trace_of(std::move(answers[v]), subject.id));
    subjects.push_back(std::move(subject));
  }
  return subjects;
}

// The first program from `index` on, every `stride`-th, that can be lowered.
Result<std::vector<Subject>> subjects_of_number(tracer::Tracer& tracer, const synth::Space& space, int length,
                                                uint64_t index, uint64_t stride, int variants, uint64_t seed,
                                                Deadline deadline) {
  thread_local std::map<int, std::unique_ptr<synth::Maker>> makers;
  thread_local const synth::Space* of = nullptr;
  if (of != &space) makers.clear(), of = &space;
  auto& maker = makers[length];
  if (!maker)
    maker = std::make_unique<synth::Maker>(space, synth::MakerConfig{.length = length, .seed = seed});
  if (maker->sampler().empty())
    return input_error("no program of {} operators is within these bounds", length);
  Error last{"no program", Blame::kInput};
  for (int i = 0; i < kMaxAttempts && !deadline.passed(); ++i, index += stride) {
    synth::Made made;
    maker->draw(index, 0, made);
    if (made.outcome != synth::Outcome::kMade) continue;
    maker->write(made);
    auto subjects = subjects_of_program(tracer, made, fmt::format("L{}-s{}-{}", length, seed, index),
                                        variants, seed, deadline);
    if (subjects.ok()) return subjects;
    if (subjects.error().blame != Blame::kInput) return subjects.error();
    last = subjects.error();
  }
  return last;
}

}  // namespace

Result<Source> source_of_file(tracer::Tracer& tracer, const std::filesystem::path& candidate,
                              const std::filesystem::path& reference, const PairReader& reader,
                              uint64_t seed) {
  NEREID_TRY(const auto text, read_file(candidate));
  const Header header = header_of(text);
  if (reference.empty() && header.reference.empty())
    return input_error("{}: expected a line `reference: PATH` in its docstring, or --reference",
                       candidate.string());
  return file_source(tracer, candidate,
                     reference.empty() ? candidate.parent_path() / header.reference : reference, reader,
                     header.policy, seed);
}

Result<std::vector<Source>> sources_of_folder(tracer::Tracer& tracer, const std::filesystem::path& folder,
                                              const PairReader& reader, uint64_t seed) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".py") files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<Source> sources;
  for (const auto& file : files) {
    NEREID_TRY(const auto text, read_file(file));
    const Header header = header_of(text);
    if (header.reference.empty() || !header.verdict.starts_with("Verified")) continue;
    sources.push_back(file_source(tracer, file, folder / header.reference, reader, header.policy, seed));
  }
  if (sources.empty())
    return input_error(
        "{}: expected candidates whose docstring names `reference: PATH` and `verdict: Verified`",
        folder.string());
  return sources;
}

Result<std::vector<Source>> sources_of_saved(const std::filesystem::path& folder) {
  NEREID_TRY(auto subjects, load_subjects(folder));
  std::vector<Source> sources;
  for (auto& subject : subjects)
    sources.push_back(
        {subject.id, [subject](Deadline) -> Result<std::vector<Subject>> { return std::vector{subject}; }});
  return sources;
}

std::vector<Source> sources_of_programs(tracer::Tracer& tracer, std::shared_ptr<const synth::Space> space,
                                        int length, int count, int variants, uint64_t seed) {
  std::vector<Source> sources;
  for (int i = 0; i < count; ++i)
    sources.push_back({fmt::format("L{}-{}", length, i), [=, &tracer](Deadline deadline) {
                         return subjects_of_number(tracer, *space, length, static_cast<uint64_t>(i),
                                                   static_cast<uint64_t>(count), variants, seed, deadline);
                       }});
  return sources;
}

}  // namespace nereid::mutate
