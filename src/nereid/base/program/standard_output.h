// Standard output of a program whose data go there.
#pragma once

#include <string_view>

#include "nereid/base/result.h"

namespace nereid {

// All of `text`, flushed. An error says why it is not all there (a full disk); where the reader has gone
// (EPIPE, as with `| head`) it is Blame::kInterrupted: there is no sense in making more.
Status stream_stdout(std::string_view text);

}  // namespace nereid
