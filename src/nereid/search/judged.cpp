#include "nereid/search/judged.h"

#include <cmath>

#include "nereid/base/json.h"
#include "nereid/base/json_field.h"

namespace nereid::search {
namespace {

Json number(double x) { return std::isfinite(x) ? Json(x) : Json(); }

Result<double> number_at(const JsonField& field, std::string_view key) {
  NEREID_TRY(const auto at, field.at(key));
  return at.number();
}

Result<Work> work_from(const JsonField& field) {
  Work work;
  NEREID_TRY(work.flops, number_at(field, "flops"));
  NEREID_TRY(work.bytes, number_at(field, "bytes"));
  NEREID_TRY(work.ms, number_at(field, "modelled_ms"));
  NEREID_TRY(const auto steps, field.at("steps"));
  NEREID_TRY_STATUS(steps.each(1 << 20, [&](const JsonField& item) -> Status {
    StepWork step;
    NEREID_TRY(step.name, item.text_at("name"));
    NEREID_TRY(step.triton, item.boolean_at("triton", false));
    NEREID_TRY(step.flops, number_at(item, "flops"));
    NEREID_TRY(step.bytes, number_at(item, "bytes"));
    NEREID_TRY(step.ms, number_at(item, "modelled_ms"));
    NEREID_TRY(step.roofline_ms, number_at(item, "roofline_ms"));
    work.steps.push_back(std::move(step));
    return ok_status();
  }));
  return work;
}

Result<verify::Times> times_from(const JsonField& field) {
  verify::Times times;
  NEREID_TRY(times.reference_ms, number_at(field, "reference_ms"));
  NEREID_TRY(times.candidate_ms, number_at(field, "candidate_ms"));
  NEREID_TRY(times.speedup, number_at(field, "speedup"));
  NEREID_TRY(const auto ci, field.at("ci"));
  NEREID_TRY(const size_t ends, ci.size(2));
  if (ends != 2) return ci.expected("two numbers");
  NEREID_TRY(times.ci_low, ci.item(0).number());
  NEREID_TRY(times.ci_high, ci.item(1).number());
  NEREID_TRY(times.method, field.text_at("method"));
  const Json numbers = field.json().value("numbers", Json::object());
  for (const auto& [name, number] : numbers.items())
    if (number.is_number()) times.numbers[name] = number.get<double>();
  return times;
}

}  // namespace

std::optional<double> Judged::ms() const {
  if (times) return times->candidate_ms;
  if (work) return work->ms;
  return std::nullopt;
}

std::optional<double> Judged::launches_ms() const {
  if (!times) return std::nullopt;
  const auto found = times->numbers.find("candidate_launches_ms");
  return found == times->numbers.end() || found->second <= 0 ? std::nullopt : std::optional(found->second);
}

Json to_json(const Work& work) {
  Json steps = Json::array();
  for (const auto& step : work.steps)
    steps.push_back({{"name", step.name},
                     {"triton", step.triton},
                     {"flops", number(step.flops)},
                     {"bytes", number(step.bytes)},
                     {"modelled_ms", number(step.ms)},
                     {"roofline_ms", number(step.roofline_ms)}});
  return {{"flops", number(work.flops)},
          {"bytes", number(work.bytes)},
          {"modelled_ms", number(work.ms)},
          {"steps", steps}};
}

Json to_json(const Judged& judged) {
  auto verdict = parse_json(judged.verdict, "verdict");
  const Json whole = verdict.ok() ? *verdict : Json::object();
  return {{"proposer", judged.proposer},
          {"variant", judged.variant},
          {"plan", judged.plan},
          {"verdict", to_string(judged.kind)},
          {"reason", judged.reason},
          {"times", whole.value("times", Json())},
          {"modelled_ms", judged.work ? number(judged.work->ms) : Json()},
          {"remembered", judged.remembered},
          {"seconds", judged.seconds}};
}

std::string feedback_of(const Judged& judged) {
  const auto verdict = parse_json(judged.verdict, "verdict");
  const std::string said = verdict.ok() ? verdict->value("feedback", "") : "";
  return said.empty() ? fmt::format("{}: {}", to_string(judged.kind), judged.reason)
                      : said;  // of older stores
}

std::string document_of(const Judged& judged) {
  auto verdict = parse_json(judged.verdict, "verdict");
  const Json document = {{"verdict", verdict.ok() ? *std::move(verdict) : Json::object()},
                         {"evidence", judged.evidence},
                         {"seconds", judged.seconds},
                         {"work", judged.work ? to_json(*judged.work) : Json()}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Judged> judged_from(const std::string& document) {
  NEREID_TRY(const Json json, parse_json(document, "the store's verdict"));
  const JsonField root(json, "judged");
  Judged judged;
  NEREID_TRY(judged.evidence, root.text_at("evidence", size_t{1} << 24));
  NEREID_TRY(judged.seconds, number_at(root, "seconds"));
  NEREID_TRY(const auto verdict, root.at("verdict"));
  judged.verdict = verdict.json().dump();
  NEREID_TRY(const std::string name, verdict.text_at("verdict"));
  const auto kind = verify::verdict_kind_from_string(name);
  if (!kind) return verdict.expected("a document with a verdict");
  judged.kind = *kind;
  NEREID_TRY(judged.reason, verdict.text_at("reason", size_t{1} << 24));
  NEREID_TRY(const auto times, verdict.find("times"));
  if (times && times->json().is_object()) {
    NEREID_TRY(judged.times, times_from(*times));
  }
  NEREID_TRY(const auto work, root.find("work"));
  if (work && work->json().is_object()) {
    NEREID_TRY(judged.work, work_from(*work));
  }
  judged.remembered = true;
  return judged;
}

}  // namespace nereid::search
