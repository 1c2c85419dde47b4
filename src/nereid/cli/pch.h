// Precompiled: what every command here needs.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
