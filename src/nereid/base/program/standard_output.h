// Standard output of a program whose data go there.
#pragma once

#include <string_view>

#include "nereid/base/result.h"

namespace nereid {

// Before anything is opened: where the caller closed a standard stream (`>&-`), its number is taken, or a
// file would get it and what is printed. Reading and writing data is an error then; messages are dropped, and
// so are those that stderr cannot take (a full disk).
void reserve_standard_streams();

// All of `text`, flushed. An error says why it is not all there (a full disk); where the reader has gone
// (EPIPE, as with `| head`) it is Blame::kInterrupted: there is no sense in making more.
Status stream_stdout(std::string_view text);

}  // namespace nereid
