// What results depend on besides the files: this program with the Python packages it asks, and the hardware.
#pragma once

#include <string>

#include "nereid/base/program/installation.h"

namespace nereid::store {

// "nereid 0.1.0 1f3a..., torch 2.11.0, triton 3.6.0". The digits are those of the built program and of its
// Python files, so that a rebuilt one asks again.
std::string versions(const Installation& installation, const std::string& program_version);

// "NVIDIA H200 x2" of a machine with two, by the kernel driver's word; empty where there is none.
std::string gpu_name();

}  // namespace nereid::store
