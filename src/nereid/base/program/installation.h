// Where this program's own parts lie: in a checkout, or in an installed wheel.
#pragma once

#include <filesystem>

#include "nereid/base/result.h"

namespace nereid {

struct Installation {
  std::filesystem::path
      bin;  // the folder of the running program: nereid-replay and libnereid_jail.so lie here
  std::filesystem::path package;  // the Python package `nereid` (tracer.py and its kin)
  std::filesystem::path python;   // the interpreter that holds torch and triton
  std::filesystem::path models;   // checkpoints that come with this program; may not be there
  std::filesystem::path
      cache;  // of compiled kernels: $NEREID_CACHE, else $XDG_CACHE_HOME/nereid, else ~/.cache/nereid

  // $NEREID_PYTHON and $NEREID_PACKAGE win (the wheel's entry point sets both); else the checkout that holds
  // the program.
  static Result<Installation> locate();
};

}  // namespace nereid
