// One line of a file of pairs: what is known of the task, the answer and its verdict (docs/synth.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "nereid/dataset/plan_text.h"
#include "nereid/dataset/variants.h"
#include "nereid/verify/verdict.h"

namespace nereid::dataset {

// `about`: the line's other fields, its `id` among them. `verdict` null: the answer was not judged. Nothing
// in the line depends on the machine.
nlohmann::json pair_line(const nlohmann::json& about, const std::string& source, const Variant& variant,
                         const PlanText& said, const verify::Verdict* verdict);

}  // namespace nereid::dataset
