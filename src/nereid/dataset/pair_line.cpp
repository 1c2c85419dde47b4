#include "nereid/dataset/pair_line.h"

#include "nereid/base/hash.h"
#include "nereid/base/json.h"

namespace nereid::dataset {
namespace {

// What a reader of the pair needs of its verdict.
Json verdict_of(const verify::Verdict& verdict, const Variant& variant) {
  const auto& c = verdict.coverage;
  Json json = {{"verdict", verify::to_string(verdict.kind)},
               {"policy", verdict.policy},
               {"device", c.device},
               {"seed", verdict.seed},
               {"trials", c.trials},
               {"inputs", c.inputs},
               {"perturbed", c.perturbed},
               {"not_perturbed", c.not_perturbed},
               {"kernels", c.kernels},
               {"launches", c.launches},
               {"left_out", c.left_out},
               {"sanitized", c.sanitized},
               {"triton_share", c.triton_share},
               {"normal_form", sha256_hex(variant.normal_form)}};
  if (verdict.errors)
    json["error"] = {{"max", verdict.errors->max_error}, {"allowed", verdict.errors->max_tolerance}};
  return json;
}

Json kernels_of(const compiler::Module& module) {
  Json kernels = Json::array();
  for (const auto& kernel : module.kernels)
    kernels.push_back(
        {{"name", kernel.name}, {"does", kernel.does}, {"choice", compiler::to_string(kernel.choice)}});
  return kernels;
}

}  // namespace

Json pair_line(const Json& about, const std::string& source, const Variant& variant, const PlanText& said,
               const verify::Verdict* verdict) {
  Json choices = Json::array();
  for (const Choice& choice : variant.choices) choices.push_back(to_string(choice));
  Json line = about;
  line["proposer"] = "compiler";
  line["choices"] = std::move(choices);
  line["kernels"] = kernels_of(variant.module);
  line["task"] = source;
  line["plan"] = said.plan;
  line["code"] = said.code;
  if (verdict != nullptr) line["verdict"] = verdict_of(*verdict, variant);
  return line;
}

}  // namespace nereid::dataset
