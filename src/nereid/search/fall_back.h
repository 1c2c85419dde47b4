// A proposal that failed, written in other ways until one is verified.
#pragma once

#include <functional>
#include <optional>

#include "nereid/proposers/proposer.h"
#include "nereid/search/judged.h"

namespace nereid::search {

// What another way of writing it may mend; nothing where that is not known of the verdict.
std::optional<proposers::Failure> failure_of(const Judged& judged);

// The first of the ways after `failed` that is verified; nothing where none is. `judge` gives nothing where
// there is no time for a verdict, which ends it.
std::optional<Judged> fall_back(
    proposers::Fallback& ways, const Judged& failed,
    const std::function<std::optional<Judged>(const proposers::Proposal&)>& judge);

}  // namespace nereid::search
