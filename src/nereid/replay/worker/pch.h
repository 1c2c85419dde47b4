// Precompiled: what every file here needs of libtorch.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "nereid/replay/worker/operators.h"
