// Tasks from the nn.Module classes of installed packages (docs/data.md).
//
// A jailed child imports a package, builds its modules in small configurations, calls each once and answers
// texts of tasks (python/nereid/_harvest). Every text is traced like any other reference; what its trace says
// decides whether it is new and what its labels are. Packages are other authors' code: they run in the
// sandbox alone, and their answers are data.
//
// A folder holds train.jsonl and held_out.jsonl (a task a line), split.json, coverage.json and progress.json,
// which says how far the lines go: lines after it are cut off when the folder is opened again, and made
// again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nereid/base/program/installation.h"
#include "nereid/base/result.h"

namespace nereid::dataset {

struct HarvestPackage {
  std::string name{};     // of the distribution
  std::string version{};  // pinned; empty: any
  bool held_out = false;
};

struct HarvestOptions {
  std::vector<HarvestPackage> packages{};
  std::filesystem::path output{};
  std::filesystem::path python{};       // the interpreter that holds the packages; empty: the installation's
  std::vector<std::string> hold_out{};  // more names
  // Held-out packages that are not collected from: other packages of their authors are held out, too.
  std::vector<HarvestPackage> held_out_elsewhere{};
  uint64_t limit = 0;  // tasks of each package; 0: all
  int max_operators = 12;
  int per_entry = 60;      // subgraphs of one module or model
  int same_structure = 8;  // tasks with equal structure
  uint64_t seed = 0;
  double seconds = 0;         // for all; 0: no end
  double entry_seconds = 30;  // for one module or model
};

// "NAME==VERSION", one a line, as pip reads it; "# held out" after it holds a package out.
Result<std::vector<HarvestPackage>> read_package_list(const std::filesystem::path& path);
// "timm" or "timm==1.0.31"; an error where it is no name of a distribution, or one of a benchmark.
Result<HarvestPackage> package_named(const std::string& text);

// Collects until everything was looked at, or limit, time or an interrupt end it. The report: counts of this
// folder by package, split, form, operators, difficulty and licence, what was dropped and why, rates.
Result<nlohmann::json> harvest(const HarvestOptions& options, const Installation& installation);

}  // namespace nereid::dataset
