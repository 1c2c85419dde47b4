// libhwy's benchmark code measures the clock's resolution whenever the library is loaded: 4 to 7 ms of a
// processor, half of what `nereid` takes to start. Nothing here reads the result. The loader binds the
// library's call to this definition, as the program comes first.
#include <cstdint>

namespace hwy::platform {

uint64_t TimerResolution();
uint64_t TimerResolution() { return 1; }

}  // namespace hwy::platform
