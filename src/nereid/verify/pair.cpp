#include "nereid/verify/pair.h"

#include "nereid/base/file.h"
#include "nereid/base/program/included_files.h"
#include "nereid/verify/batch/answer.h"

namespace nereid::verify {

Status read_candidate(const std::filesystem::path& path, Pair& pair) {
  pair.candidate_name = path.string();
  pair.form = path.extension() == ".py" ? Pair::Form::kSource : Pair::Form::kAnswer;
  std::error_code failure;
  const auto size = std::filesystem::file_size(path, failure);
  if (!failure && size > kMaxAnswerBytes) {
    pair.candidate_text.assign(kMaxAnswerBytes + 1, ' ');
    return ok_status();
  }
  NEREID_TRY(pair.candidate_text, read_file(path, kMaxAnswerBytes));
  if (pair.form == Pair::Form::kSource)
    pair.candidate_text = with_absolute_imports(std::move(pair.candidate_text), package_of(path).name);
  return ok_status();
}

Status read_reference(const std::filesystem::path& path, Pair& pair) {
  pair.reference_name = path.string();
  NEREID_TRY(std::string source, read_file(path, kMaxAnswerBytes));
  NEREID_TRY(pair.reference_source, task_with_files(std::move(source), path));
  return ok_status();
}

Result<Pair> read_pair(const std::filesystem::path& reference, const std::filesystem::path& candidate) {
  Pair pair;
  NEREID_TRY_STATUS(read_reference(reference, pair));
  NEREID_TRY_STATUS(read_candidate(candidate, pair));
  return pair;
}

}  // namespace nereid::verify
