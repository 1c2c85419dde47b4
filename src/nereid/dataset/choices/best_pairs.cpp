#include "nereid/dataset/choices/best_pairs.h"

#include <cmath>
#include <optional>

#include "nereid/base/json_field.h"

namespace nereid::dataset {
namespace {

constexpr size_t kMostChoices = 1000;

// Of a Verified choice with a time.
Result<std::optional<double>> seconds_at(const JsonField& choice, bool measured) {
  NEREID_TRY(const auto verdict, choice.at("verdict"));
  NEREID_TRY(const std::string kind, verdict.text_at("verdict"));
  if (kind != "Verified") return std::optional<double>();
  NEREID_TRY(const auto field, choice.find(measured ? "seconds" : "modelled_seconds"));
  if (!field) return std::optional<double>();
  NEREID_TRY(const double seconds, field->number());
  if (!(seconds > 0)) return field->expected("a number above 0");
  return std::optional<double>(seconds);
}

struct Best {
  Json choice{};
  double seconds = 0;
  std::optional<double> first{};  // the compiler's own
};

Result<std::optional<Best>> best_of(const JsonField& program, bool measured) {
  Best best;
  NEREID_TRY(const auto choices, program.at("choices"));
  NEREID_TRY_STATUS(choices.each(kMostChoices, [&](const JsonField& choice) -> Status {
    NEREID_TRY(const auto seconds, seconds_at(choice, measured));
    if (!seconds) return ok_status();
    NEREID_TRY(const auto kind, choice.text_at("kind"));
    NEREID_TRY(const auto others, choice.at("choices"));
    const bool own = kind == "compiled" && others.json().empty();
    if (own) best.first = seconds;
    if (best.seconds == 0 || *seconds < best.seconds) best.choice = choice.json(), best.seconds = *seconds;
    return ok_status();
  }));
  if (best.seconds == 0) return std::optional<Best>();
  if (best.first && *best.first < best.seconds * kFaster) {
    NEREID_TRY_STATUS(choices.each(kMostChoices, [&](const JsonField& choice) -> Status {
      NEREID_TRY(const auto kind, choice.text_at("kind"));
      if (kind == "compiled" && choice.json().at("choices").empty())
        best.choice = choice.json(), best.seconds = *best.first;
      return ok_status();
    }));
  }
  return std::optional<Best>(std::move(best));
}

}  // namespace

Result<BestPairs> best_pairs(std::string_view text, const std::string& where) {
  BestPairs made;
  double logs = 0;
  int64_t number = 0, compared = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string place = fmt::format("{}:{}", where, ++number);
    if (line.empty()) continue;
    NEREID_TRY(Json json, parse_json(line, place));
    const JsonField program(json, place);
    NEREID_TRY(const auto left_out, program.find("left_out"));
    if (left_out) continue;
    NEREID_TRY(const auto device, program.at("device"));
    const bool measured = !device.json().is_null();
    NEREID_TRY(auto best, best_of(program, measured));
    if (!best) continue;
    Json pair = json;
    for (const char* other : {"choices", "complete", "answers"}) pair.erase(other);
    const bool own = best->first && *best->first == best->seconds;
    for (auto& [name, value] : best->choice.items())
      if (name != "features" && name != "kept") pair[name] = std::move(value);
    NEREID_TRY(const auto roofline, program.at("roofline_seconds"));
    NEREID_TRY(const double least, roofline.number());
    pair["roofline_share"] = least / best->seconds;
    pair["times"] = measured ? "measured" : "modelled";
    if (best->first) {
      pair["gain"] = *best->first / best->seconds;
      logs += std::log(*best->first / best->seconds), ++compared;
    }
    made.lines += pair.dump() + "\n";
    made.measured &= measured;
    ++made.pairs, made.first += own ? 1 : 0;
  }
  if (compared > 0) made.gain = std::exp(logs / static_cast<double>(compared));
  return made;
}

}  // namespace nereid::dataset
