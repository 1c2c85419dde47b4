// The folders of this process's shared libraries: a library may load more of its kind later, from its folder.
#pragma once

#include <string>
#include <vector>

namespace nereid::sandbox {

// The folders of all that is loaded now, and those that the loader looks through besides ($LD_LIBRARY_PATH);
// for what is in a Python package of NVIDIA's (site-packages/nvidia/cudnn/lib) all of these packages.
std::vector<std::string> library_folders();

// ".../site-packages/nvidia" of ".../site-packages/nvidia/cudnn/lib"; other folders as they are.
std::string with_its_family(const std::string& folder);

}  // namespace nereid::sandbox
