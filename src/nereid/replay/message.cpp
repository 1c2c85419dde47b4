#include "nereid/replay/message.h"

#include <cmath>
#include <limits>

namespace nereid::replay {
namespace {

Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double number_at(const Json& json, const char* key) {
  const auto& value = json.at(key);
  if (!value.is_string()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  return value == "-inf" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

Json to_json(const OutputComparison& o) {
  return {{"path", o.path},
          {"agrees", o.agrees},
          {"reason", o.reason},
          {"dtype", o.dtype},
          {"sizes", o.sizes},
          {"elements", o.elements},
          {"wrong", o.wrong},
          {"undefined", o.undefined},
          {"error", number(o.error)},
          {"own_error", number(o.own_error)},
          {"error_limit", number(o.error_limit)},
          {"norm_error", number(o.norm_error)},
          {"own_norm_error", number(o.own_norm_error)},
          {"norm_limit", number(o.norm_limit)},
          {"max_absolute_error", number(o.max_absolute_error)},
          {"max_relative_error", number(o.max_relative_error)},
          {"systematic", o.systematic},
          {"systematic_error", number(o.systematic_error)},
          {"systematic_limit", number(o.systematic_limit)},
          {"constant", o.constant},
          {"insensitive", o.insensitive},
          {"first_wrong", o.first_wrong},
          {"worst", o.worst},
          {"first_got", number(o.first_got)},
          {"first_want", number(o.first_want)},
          {"worst_got", number(o.worst_got)},
          {"worst_want", number(o.worst_want)}};
}

OutputComparison output_from_json(const Json& j) {
  OutputComparison o;
  j.at("path").get_to(o.path);
  j.at("agrees").get_to(o.agrees);
  j.at("reason").get_to(o.reason);
  j.at("dtype").get_to(o.dtype);
  j.at("sizes").get_to(o.sizes);
  j.at("elements").get_to(o.elements);
  j.at("wrong").get_to(o.wrong);
  j.at("undefined").get_to(o.undefined);
  o.error = number_at(j, "error");
  o.own_error = number_at(j, "own_error");
  o.error_limit = number_at(j, "error_limit");
  o.norm_error = number_at(j, "norm_error");
  o.own_norm_error = number_at(j, "own_norm_error");
  o.norm_limit = number_at(j, "norm_limit");
  o.max_absolute_error = number_at(j, "max_absolute_error");
  o.max_relative_error = number_at(j, "max_relative_error");
  j.at("systematic").get_to(o.systematic);
  o.systematic_error = number_at(j, "systematic_error");
  o.systematic_limit = number_at(j, "systematic_limit");
  j.at("constant").get_to(o.constant);
  j.at("insensitive").get_to(o.insensitive);
  j.at("first_wrong").get_to(o.first_wrong);
  j.at("worst").get_to(o.worst);
  o.first_got = number_at(j, "first_got");
  o.first_want = number_at(j, "first_want");
  o.worst_got = number_at(j, "worst_got");
  o.worst_want = number_at(j, "worst_want");
  return o;
}

template <typename Enum>
Enum enum_at(const Json& json, const char* key, Enum last) {
  const auto value = json.at(key).get<int>();
  if (value < 0 || value > static_cast<int>(last)) throw std::out_of_range(key);
  return static_cast<Enum>(value);
}

}  // namespace

Json to_json(const Where& w) {
  return {{"phase", static_cast<int>(w.phase)},
          {"call", w.call},
          {"step", w.step},
          {"op", w.op},
          {"file", w.place.file},
          {"line", w.place.line}};
}

Where where_from_json(const Json& j) {
  Where w{enum_at(j, "phase", trace::PhaseKind::kForward), j.at("call"), j.at("step"), j.at("op"), {}};
  j.at("file").get_to(w.place.file);
  j.at("line").get_to(w.place.line);
  return w;
}

Json to_json(const Failure& f) {
  return {{"kind", static_cast<int>(f.kind)}, {"where", to_json(f.where)}, {"message", f.message}};
}

Failure failure_from_json(const Json& j) {
  return {enum_at(j, "kind", Failure::Kind::kUnsupported), where_from_json(j.at("where")), j.at("message")};
}

Json to_json(const ttir::Finding& f) {
  return {{"kind", static_cast<int>(f.kind)},
          {"kernel", f.kernel},
          {"file", f.file},
          {"line", f.line},
          {"program", f.program},
          {"buffer", f.buffer},
          {"index", f.index},
          {"sentence", f.sentence}};
}

ttir::Finding finding_from_json(const Json& j) {
  ttir::Finding f;
  f.kind = enum_at(j, "kind", ttir::FindingKind::kOrderDependent);
  j.at("kernel").get_to(f.kernel);
  j.at("file").get_to(f.file);
  j.at("line").get_to(f.line);
  j.at("program").get_to(f.program);
  j.at("buffer").get_to(f.buffer);
  j.at("index").get_to(f.index);
  j.at("sentence").get_to(f.sentence);
  return f;
}

Json to_json(const Trial& t) {
  return {{"seed", t.seed},         {"distribution", static_cast<int>(t.distribution)},
          {"perturb", t.perturb},   {"gentle", t.gentle},
          {"narrowed", t.narrowed}, {"deciding", t.deciding},
          {"sanitize", t.sanitize}};
}

Trial trial_from_json(const Json& j) {
  return {.seed = j.at("seed"),
          .distribution = enum_at(j, "distribution", InputDistribution::kRedrawn),
          .perturb = j.at("perturb"),
          .gentle = j.at("gentle"),
          .narrowed = j.at("narrowed"),
          .deciding = j.at("deciding"),
          .sanitize = j.at("sanitize")};
}

Json to_json(const Tolerance& t) {
  Json out = {
      {"factor", t.factor}, {"slack", t.slack}, {"kernelbench", t.kernelbench}, {"allow_tf32", t.allow_tf32}};
  if (t.rtol) out["rtol"] = *t.rtol;
  if (t.atol) out["atol"] = *t.atol;
  return out;
}

Tolerance tolerance_from_json(const Json& j) {
  Tolerance t;
  j.at("factor").get_to(t.factor);
  t.slack = j.value("slack", 1.0);
  t.kernelbench = j.value("kernelbench", false);
  j.at("allow_tf32").get_to(t.allow_tf32);
  if (j.contains("rtol")) t.rtol = j.at("rtol").get<double>();
  if (j.contains("atol")) t.atol = j.at("atol").get<double>();
  return t;
}

Json to_json(const Comparison& c) {
  Json out = {
      {"agrees", c.agrees},           {"structure", c.structure},     {"oracle", static_cast<int>(c.oracle)},
      {"oracle_note", c.oracle_note}, {"conditioned", c.conditioned}, {"defined", c.defined},
      {"overflown", c.overflown},     {"constant", c.constant},       {"insensitive", c.insensitive},
      {"finite", c.finite},           {"outputs", Json::array()}};
  for (const auto& output : c.outputs) out["outputs"].push_back(to_json(output));
  return out;
}

Comparison comparison_from_json(const Json& j) {
  Comparison c;
  j.at("agrees").get_to(c.agrees);
  j.at("structure").get_to(c.structure);
  c.oracle = enum_at(j, "oracle", Oracle::kOwn);
  j.at("oracle_note").get_to(c.oracle_note);
  j.at("conditioned").get_to(c.conditioned);
  j.at("defined").get_to(c.defined);
  j.at("overflown").get_to(c.overflown);
  j.at("constant").get_to(c.constant);
  j.at("insensitive").get_to(c.insensitive);
  j.at("finite").get_to(c.finite);
  for (const auto& output : j.at("outputs")) c.outputs.push_back(output_from_json(output));
  return c;
}

}  // namespace nereid::replay
