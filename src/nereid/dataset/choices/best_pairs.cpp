#include "nereid/dataset/choices/best_pairs.h"

#include <cmath>
#include <optional>

#include "nereid/base/json_field.h"
#include "nereid/verify/verdict_kind.h"

namespace nereid::dataset {
namespace {

constexpr size_t kMaxChoices = 1000;

// Of a Verified choice with a time.
Result<std::optional<double>> seconds_at(const JsonField& choice, bool measured) {
  NEREID_TRY(const auto verdict, choice.at("verdict"));
  NEREID_TRY(const std::string kind, verdict.text_at("verdict"));
  if (verify::verdict_kind_from_string(kind) != verify::VerdictKind::kVerified)
    return std::optional<double>();
  NEREID_TRY(const auto field, choice.find(measured ? "seconds" : "modelled_seconds"));
  if (!field) return std::optional<double>();
  NEREID_TRY(const double seconds, field->number());
  if (!(seconds > 0)) return field->expected("a number above 0");
  return std::optional<double>(seconds);
}

struct Timed {
  Json choice{};
  double seconds = 0;
  std::optional<double> again{};  // a second time, which did not decide which one is the best
};

struct Best {
  Timed best{};
  std::optional<Timed> own{};  // the compiler's

  bool is_own() const { return own && best.choice == own->choice; }
  double gain() const {
    return own->again && best.again ? *own->again / *best.again : own->seconds / best.seconds;
  }
};

Result<std::optional<Best>> best_of(const JsonField& program, bool measured) {
  Best found;
  NEREID_TRY(const auto choices, program.at("choices"));
  NEREID_TRY_STATUS(choices.each(kMaxChoices, [&](const JsonField& choice) -> Status {
    NEREID_TRY(const auto seconds, seconds_at(choice, measured));
    if (!seconds) return ok_status();
    Timed timed{.choice = choice.json(), .seconds = *seconds};
    NEREID_TRY(const auto again, choice.find("seconds_again"));
    if (again) {
      NEREID_TRY(timed.again, again->number());
    }
    NEREID_TRY(const bool first, choice.boolean_at("first", false));
    if (first) found.own = timed;
    if (found.best.seconds == 0 || *seconds < found.best.seconds) found.best = std::move(timed);
    return ok_status();
  }));
  if (found.best.seconds == 0) return std::optional<Best>();
  if (found.own && found.own->seconds < found.best.seconds * kFaster) found.best = *found.own;
  return std::optional<Best>(std::move(found));
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
    NEREID_TRY(const auto found, best_of(program, measured));
    if (!found) continue;
    Json pair = json;
    for (const char* other : {"choices", "complete", "answers"}) pair.erase(other);
    for (const auto& [name, value] : found->best.choice.items())
      if (name != "features" && name != "kept") pair[name] = value;
    NEREID_TRY(const auto roofline, program.at("roofline_seconds"));
    NEREID_TRY(const double least, roofline.number());
    pair["roofline_share"] = least / found->best.seconds;
    pair["times"] = measured ? "measured" : "modelled";
    if (found->own) {
      pair["gain"] = found->gain();
      logs += std::log(found->gain()), ++compared;
    }
    made.lines += pair.dump() + "\n";
    made.measured &= measured;
    ++made.pairs, made.first += found->is_own() ? 1 : 0;
  }
  if (compared > 0) made.gain = std::exp(logs / static_cast<double>(compared));
  return made;
}

}  // namespace nereid::dataset
