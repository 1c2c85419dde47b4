// What protocol.h sends and receives, and how the reports are written in it. Only .cpp files include this.
#pragma once

#include <vector>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/replay/protocol.h"
#include "nereid/replay/report.h"

namespace nereid::replay {

struct Message {
  Json document;
  std::vector<Fd> descriptors;
};

// Reports as documents. Numbers that JSON has no word for ("inf", "nan") are text. The readers throw
// nlohmann's exceptions where a field is missing or of another type.
Json to_json(const Where& where);
Json to_json(const Failure& failure);
Json to_json(const ttir::Finding& finding);
Json to_json(const Trial& trial);
Json to_json(const Tolerance& tolerance);
Json to_json(const Comparison& comparison);

Where where_from_json(const Json& json);
Failure failure_from_json(const Json& json);
ttir::Finding finding_from_json(const Json& json);
Trial trial_from_json(const Json& json);
Tolerance tolerance_from_json(const Json& json);
Comparison comparison_from_json(const Json& json);

}  // namespace nereid::replay
