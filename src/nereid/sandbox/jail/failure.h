// The error of a system call that failed.
#pragma once

#include <cerrno>
#include <cstring>

#include "nereid/base/result.h"

namespace nereid::sandbox {

// "WHAT: REASON", from errno.
inline Error failure(const char* what) { return our_error("{}: {}", what, strerror(errno)); }

}  // namespace nereid::sandbox
