#include "nereid/dataset/harvest_index.h"

#include <set>
#include <sstream>

#include "nereid/base/file.h"
#include "nereid/base/hash.h"

namespace nereid::dataset {

Status HarvestIndex::read(const std::filesystem::path& path) {
  NEREID_TRY(const std::string text, read_file(path, size_t{8} << 30));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    NEREID_TRY(const Json json, parse_json(line, path.string()));
    try {
      add(json);
      add_text(json.at("code").get<std::string>());
    } catch (const nlohmann::json::exception& e) {
      return input_error("{}: {}; remove the folder to start over", path.string(), e.what());
    }
  }
  return ok_status();
}

bool HarvestIndex::add_text(std::string_view code) { return texts_.insert(sha256_hex(code)).second; }

void HarvestIndex::add(const Json& line) {
  digests_.insert(line.at("digest").get<std::string>());
  const auto structure = line.at("structure").get<std::string>();
  ++structures_[structure];
  const auto split = line.at("split").get<std::string>();
  if (split == "train") in_training_.insert(structure);
  ++counts_["split"][split];
  ++counts_["package"][line.at("package").get<std::string>()];
  ++counts_["licence"][line.at("licence").get<std::string>()];
  ++counts_["difficulty"][line.at("difficulty").get<std::string>()];
  ++counts_["form"][line.at("form").get<std::string>()];
  ++counts_["operator_count"][std::to_string(line.at("operators").size())];
  std::set<std::string> operators, classes;
  for (const auto& name : line.at("operators")) operators.insert(name.get<std::string>());
  for (const auto& name : line.at("classes")) classes.insert(name.get<std::string>());
  for (const auto& name : operators) ++counts_["operator"][name];
  for (const auto& name : classes) ++counts_["operator_class"][name];
  ++total_;
}

std::string HarvestIndex::rejection_reason(const HarvestLabels& labels, bool held_out,
                                           int64_t same_structure) const {
  if (digests_.contains(labels.digest)) return "equal canonical trace";
  if (held_out && in_training_.contains(labels.structure))
    return "held out, and its structure is in training";
  const auto known = structures_.find(labels.structure);
  const bool is_enough = known != structures_.end() && known->second >= static_cast<uint64_t>(same_structure);
  return is_enough ? "structure known in enough sizes" : "";
}

}  // namespace nereid::dataset
