// A run while it goes on, as a page that fetches its own content anew.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nereid/base/json.h"
#include "nereid/cli/pages/runs_page.h"
#include "nereid/train/runs/run_progress.h"

namespace nereid::cli {

// The figures of a step that `nereid runs watch` shows, as an object; null where the run has none of them.
Json watched_step(const std::filesystem::path& folder, const train::RunProgress& run, int64_t step);

// The page, which fetches `content` every two seconds and shows it where it has changed.
std::string live_run_page(const std::string& name);

// State, figures of the last step, what its time goes to, curves, and some rollouts: HTML.
std::string live_run_content(const std::filesystem::path& folder, const train::RunProgress& run,
                             const std::vector<train::RolloutRecord>& rollouts);

}  // namespace nereid::cli
