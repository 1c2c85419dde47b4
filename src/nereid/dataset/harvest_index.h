// What the lines of a harvest hold: which tasks are new, and how many there are of each kind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "nereid/base/json.h"
#include "nereid/base/result.h"
#include "nereid/dataset/harvest_labels.h"

namespace nereid::dataset {

class HarvestIndex {
 public:
  using Counts = std::map<std::string, std::map<std::string, uint64_t>>;

  // The lines of an earlier run.
  Status read(const std::filesystem::path& path);
  // Throws nlohmann::json::exception where the line has not all fields.
  void add(const Json& line);
  // False where there was an equal text.
  bool add_text(std::string_view code);

  // Why a task is dropped, empty where it is new: at most `same_structure` of one structure, and none of
  // training among those that are held out.
  std::string rejection_reason(const HarvestLabels& labels, bool held_out, int64_t same_structure) const;

  uint64_t total() const { return total_; }
  size_t structures() const { return structures_.size(); }
  // By field of a line, then by its value.
  const Counts& counts() const { return counts_; }

 private:
  std::unordered_set<std::string> texts_{}, digests_{}, in_training_{};
  std::unordered_map<std::string, uint64_t> structures_{};
  Counts counts_{};
  uint64_t total_ = 0;
};

}  // namespace nereid::dataset
