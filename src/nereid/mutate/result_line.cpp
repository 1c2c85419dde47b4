#include "nereid/mutate/result_line.h"

namespace nereid::mutate {

Json to_json(const ResultLine& r) {
  const bool mutant = r.kind == ResultLine::Kind::kMutant;
  Json json = {{"kind", mutant ? "mutant" : "honest"},
               {"id", r.id},
               {"subject", r.subject},
               {"verdict", r.verdict},
               {"rule", r.rule},
               {"inputs", r.inputs},
               {"sentence", r.sentence},
               {"our_error", r.our_error},
               {"seconds", r.seconds}};
  if (!r.what.empty()) {
    json["what"] = r.what, json["kernel"] = r.kernel, json["file"] = r.file, json["line"] = r.line;
    json["source"] = r.source, json["before"] = r.before, json["after"] = r.after;
  }
  if (!mutant) return json;
  json["fault"] = to_string(r.fault);
  json["trials"] = r.trials, json["kernelbench"] = to_string(r.kernelbench);
  json["witness"] = nullptr;
  if (r.witness)
    json["witness"] = {
        {"inputs", r.witness->inputs}, {"seed", r.witness->seed}, {"reason", r.witness->reason}};
  return json;
}

Result<ResultLine> result_from_json(const Json& json, const std::string& what) {
  ResultLine r;
  try {
    r.kind = json.at("kind") == "mutant" ? ResultLine::Kind::kMutant : ResultLine::Kind::kHonest;
    json.at("id").get_to(r.id), json.at("subject").get_to(r.subject);
    json.at("verdict").get_to(r.verdict), json.at("rule").get_to(r.rule), json.at("inputs").get_to(r.inputs);
    json.at("sentence").get_to(r.sentence), json.at("our_error").get_to(r.our_error);
    json.at("seconds").get_to(r.seconds);
    if (json.contains("what")) {
      json.at("what").get_to(r.what), json.at("kernel").get_to(r.kernel), json.at("file").get_to(r.file);
      json.at("line").get_to(r.line), json.at("source").get_to(r.source);
      json.at("before").get_to(r.before), json.at("after").get_to(r.after);
    }
    if (r.kind == ResultLine::Kind::kHonest) return r;
    const auto fault = fault_from_string(json.at("fault").get<std::string>());
    if (!fault) return input_error("{}: expected a class of faults in \"fault\"", what);
    r.fault = *fault;
    json.at("trials").get_to(r.trials),
        r.kernelbench = json.at("kernelbench") == "kills"    ? KernelBench::kKills
                        : json.at("kernelbench") == "passes" ? KernelBench::kPasses
                                                             : KernelBench::kUndecided;
    if (const Json& w = json.at("witness"); !w.is_null())
      r.witness = Witness{w.at("inputs"), w.at("seed"), w.at("reason")};
  } catch (const nlohmann::json::exception& e) {
    return input_error("{}: {}", what, e.what());
  }
  return r;
}

}  // namespace nereid::mutate
