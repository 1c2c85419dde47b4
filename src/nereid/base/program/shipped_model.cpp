#include "nereid/base/program/shipped_model.h"

namespace nereid {

Result<std::filesystem::path> shipped_model(const Installation& installation) {
  auto folder = installation.models / "small";
  std::error_code failure;
  if (!std::filesystem::exists(folder / "config.json", failure))
    return input_error("no model comes with this installation ({} is not there): name a checkpoint's folder",
                       (folder / "config.json").string());
  return folder;
}

}  // namespace nereid
