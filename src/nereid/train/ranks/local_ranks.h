// The ranks of one host: processes that one launcher forks, with a socket between rank 0 and each of the
// others.
#pragma once

#include <functional>
#include <memory>

#include "nereid/base/file.h"
#include "nereid/train/ranks/ranks.h"

namespace nereid::train {

// What a rank has before it opens its device.
struct RankLink {
  int64_t rank = 0, count = 1;
  std::vector<Fd> sockets;  // rank 0: to each other rank, its own place empty; another: one, to rank 0
  // The longest that another rank's step, or its evaluation of held-out rows, may take beyond ours.
  int64_t patience_seconds = 600;
};

// On CUDA sums and copies of tensors go through NCCL, which libtorch's CUDA half brings along; elsewhere, and
// for numbers on the host, through the sockets: rank 0 adds in the order of ranks. To be called when the
// device is open.
Result<std::unique_ptr<Ranks>> connect_ranks(RankLink link, at::Device device);

// Runs `body` in `count` processes of its own and returns the first cause of trouble: a rank that was killed,
// by its number and signal, before what the others say of it. When one ends early the others have a few
// seconds to notice, and are killed then. They do not outlive this process. To be called before libtorch is
// used: it forks.
Status launch_ranks(int64_t count, const std::function<Status(RankLink)>& body);

}  // namespace nereid::train
