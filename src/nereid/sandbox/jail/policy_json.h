// A policy as text, for the process that prepares the jail: Python, through libnereid_jail.so.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "nereid/sandbox/jail/policy.h"

namespace nereid::sandbox {

nlohmann::json to_json(const Policy& policy);
// Throws nlohmann::json::exception where a field is missing or of another type.
Policy policy_from_json(const nlohmann::json& json);

}  // namespace nereid::sandbox
