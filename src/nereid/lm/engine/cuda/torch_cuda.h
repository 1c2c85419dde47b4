// The functions of libtorch's CUDA half that are looked up by name. It lives in a library of its own,
// libnereid_torch_cuda.so, that is opened where a GPU is: the programs themselves link the CPU half alone.
#pragma once

namespace nereid::lm {

// Functions throw what libtorch throws.
struct TorchCuda {
  // Runs work(argument) until it is warm, records it as a CUDA graph on a stream of its own, and replays it
  // once on the current stream. Recordings share their memory: what one computed is valid until another is
  // replayed.
  void* (*record)(void (*work)(void*), void* argument);
  void (*replay)(void* recorded);
  void (*forget)(void* recorded);
  void* (*current_stream)();  // a CUstream
};

// The library's one symbol, of this type.
using GetTorchCuda = const TorchCuda* (*)();
inline constexpr const char* kGetTorchCuda = "nereid_torch_cuda";

}  // namespace nereid::lm
