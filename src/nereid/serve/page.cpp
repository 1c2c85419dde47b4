#include "nereid/serve/server.h"

namespace nereid::serve {

std::string_view live_page() {
  return
#include "nereid/serve/page.html.inc"
      ;
}

}  // namespace nereid::serve
