// The child that imports packages for a harvest (python/nereid/_harvest), in a sandbox.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "nereid/base/json.h"
#include "nereid/base/program/installation.h"
#include "nereid/base/result.h"
#include "nereid/sandbox/zygote/zygote.h"

namespace nereid::dataset {

class HarvestWorker {
 public:
  static constexpr double kListSeconds = 600;  // imports of all modules of a large package
  static constexpr double kWait = 3600;        // for a place to run in

  // `python` is that of `installation` where it is empty.
  static Result<std::unique_ptr<HarvestWorker>> start(const std::filesystem::path& python,
                                                      Installation installation);

  // A child's answer as JSON; nothing where it gave none, with the reason.
  struct Reply {
    std::optional<Json> json{};
    std::string why{};
  };
  // Each request has a child of its own, which is killed after so many seconds.
  Result<Reply> ask(const Json& request, double seconds);

 private:
  std::unique_ptr<sandbox::Zygote> zygote_;
};

}  // namespace nereid::dataset
