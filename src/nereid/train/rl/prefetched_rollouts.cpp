#include "nereid/train/rl/prefetched_rollouts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "nereid/base/json_field.h"

namespace nereid::train {
namespace {

constexpr size_t kMaxAnswers = 1 << 24;  // prompts, answers

template <typename T>
Json bytes_of(const std::vector<T>& numbers) {
  const auto* begin = reinterpret_cast<const uint8_t*>(numbers.data());
  return Json::binary({begin, begin + numbers.size() * sizeof(T)});
}

template <typename T>
Status read_bytes(const JsonField& parent, const char* name, std::vector<T>& numbers) {
  NEREID_TRY(const auto field, parent.at(name));
  if (!field.json().is_binary()) return field.expected("bytes");
  const auto& bytes = field.json().get_binary();
  if (bytes.size() % sizeof(T) != 0) return field.expected(fmt::format("numbers of {} bytes", sizeof(T)));
  numbers.resize(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return ok_status();
}

Result<DrawnAnswer> read_answer(const JsonField& field, size_t prompts, int64_t vocab_size) {
  DrawnAnswer answer;
  NEREID_TRY(const auto prompt, field.at("prompt"));
  NEREID_TRY(const int64_t number, prompt.integer(0, static_cast<int64_t>(prompts) - 1));
  answer.prompt = static_cast<size_t>(number);
  for (const auto& [key, target] : {std::pair{"sample", &answer.sample}, {"turn", &answer.turn}}) {
    NEREID_TRY(const int64_t value, field.integer_at(key, 0, 0, INT64_MAX));
    *target = static_cast<size_t>(value);
  }
  NEREID_TRY_STATUS(read_bytes(field, "tokens", answer.tokens.tokens));
  NEREID_TRY_STATUS(read_bytes(field, "logprobs", answer.engine_logprobs));
  NEREID_TRY(const auto length, field.at("length"));
  NEREID_TRY(const int64_t begin, length.integer(1, std::ssize(answer.tokens.tokens) - 1));
  answer.tokens.prompt = static_cast<size_t>(begin);
  NEREID_TRY(const int64_t begun, field.integer_at("begun", 0, 0, begin));
  answer.tokens.begun = static_cast<size_t>(begun);
  if (answer.engine_logprobs.size() != answer.tokens.tokens.size() - answer.tokens.prompt)
    return field.expected("a log-probability for each token of the answer");
  if (!std::ranges::all_of(answer.tokens.tokens,
                           [&](int32_t token) { return token >= 0 && token < vocab_size; }))
    return field.expected(fmt::format("tokens below {}", vocab_size));
  return answer;
}

Result<PrefetchedRollouts> read_part(const Json& json, int64_t vocab_size, const std::string& where) {
  const JsonField root(json, where);
  PrefetchedRollouts written;
  NEREID_TRY(const auto step, root.at("step"));
  NEREID_TRY(written.step, step.integer(0, INT64_MAX));
  for (const char* name : {"classes", "tasks"}) {
    NEREID_TRY(const auto list, root.at(name));
    NEREID_TRY_STATUS(list.each(kMaxAnswers, [&](const JsonField& item) -> Status {
      NEREID_TRY(const int64_t number, item.integer(0, INT64_MAX));
      if (*name == 'c')
        written.classes.push_back(number);
      else
        written.tasks.push_back(static_cast<size_t>(number));
      return ok_status();
    }));
  }
  if (written.classes.size() != written.tasks.size()) return root.expected("a task for each class");
  NEREID_TRY(const auto answers, root.at("answers"));
  NEREID_TRY_STATUS(answers.each(kMaxAnswers, [&](const JsonField& item) -> Status {
    NEREID_TRY(written.answers.emplace_back(), read_answer(item, written.tasks.size(), vocab_size));
    return ok_status();
  }));
  return written;
}

}  // namespace

std::string to_cbor(const PrefetchedRollouts& written) {
  Json answers = Json::array();
  for (const DrawnAnswer& answer : written.answers)
    answers.push_back({{"prompt", answer.prompt},
                       {"sample", answer.sample},
                       {"turn", answer.turn},
                       {"length", answer.tokens.prompt},
                       {"begun", answer.tokens.begun},
                       {"tokens", bytes_of(answer.tokens.tokens)},
                       {"logprobs", bytes_of(answer.engine_logprobs)}});
  return nereid::to_cbor(Json({{"step", written.step},
                               {"classes", written.classes},
                               {"tasks", written.tasks},
                               {"answers", std::move(answers)}}));
}

Result<PrefetchedRollouts> prefetched_rollouts_of(const std::vector<std::string>& kept, int64_t rank,
                                                  int64_t ranks, int64_t vocab_size,
                                                  const std::string& where) {
  PrefetchedRollouts all;
  for (size_t part = 0; part < kept.size(); ++part) {
    const std::string name = fmt::format("{}: rank {}'s answers", where, part);
    NEREID_TRY(const Json json, parse_cbor(kept[part], name, {.max_bytes = size_t{4} << 30}));
    NEREID_TRY(PrefetchedRollouts read, read_part(json, vocab_size, name));
    if (part > 0 && (read.step != all.step || read.classes != all.classes || read.tasks != all.tasks))
      return input_error("{}: expected the prompts that rank 0 has", name);
    all.step = read.step, all.classes = read.classes, all.tasks = read.tasks;
    for (DrawnAnswer& answer : read.answers)
      if (static_cast<int64_t>(answer.prompt) % ranks == rank) all.answers.push_back(std::move(answer));
  }
  std::ranges::stable_sort(  // as they were written
      all.answers, {}, [](const DrawnAnswer& answer) { return std::pair(answer.turn, answer.prompt); });
  return all;
}

}  // namespace nereid::train
