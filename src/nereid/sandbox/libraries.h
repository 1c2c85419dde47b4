// Where this process's shared libraries lie: a library may load more of its kind later, from beside it.
#pragma once

#include <string>
#include <vector>

namespace nereid::sandbox {

// The folders of all that is loaded now, and those that the loader looks through besides ($LD_LIBRARY_PATH);
// for what lies in a Python package of NVIDIA's (site-packages/nvidia/cudnn/lib) all of these packages.
std::vector<std::string> library_folders();

// ".../site-packages/nvidia" of ".../site-packages/nvidia/cudnn/lib"; other folders as they are.
std::string with_its_family(const std::string& folder);

}  // namespace nereid::sandbox
