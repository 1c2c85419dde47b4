// Which bytes a step reads, which it writes, and whether it draws random numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::trace {

// Bytes [first, last) of a storage.
struct Access {
  StorageId storage = -1;
  int64_t first = 0, last = 0;
  ValueId value = -1;
  // Of a write: every byte of the range is written, whatever it held. False where only some may be.
  bool covers = false;
  bool perhaps = false;  // of a launch's write: an address that is chosen from several tensors' goes here
};

struct StepAccess {
  // What flows into the results: an argument that is overwritten without being looked at (copy_, fill_,
  // out=), whose shape alone matters (zeros_like), or that only updates itself (running statistics) is not
  // read.
  std::vector<Access> reads, writes;
  std::vector<StorageId> made;  // storages that come into being here
  bool random = false;          // draws from a generator, with these arguments
  bool seeds = false;           // sets a generator's seed or state
};

// What a kernel may do through one of its pointer or descriptor parameters.
struct ParameterUse {
  bool read = true, written = true;
  bool chosen = false;  // written only by addresses that may be another parameter's
};
// One for each parameter of the kernel's TTIR function. An empty answer, or none for a parameter: read and
// written.
using KernelUses = std::function<std::vector<ParameterUse>(const Kernel&)>;

StepAccess access_of(const Trace& trace, const Call& call);
// A launch may reach all of each storage that it has a pointer into; all alternatives count. Writes never
// cover.
StepAccess access_of(const Trace& trace, const Launch& launch, const KernelUses& uses);
StepAccess access_of(const Trace& trace, const Step& step, const KernelUses& uses);

// Written arguments of a call: in place, out=, running statistics that are being updated. Views in place
// (squeeze_, resize_) write no element.
std::vector<ValueId> written_arguments(const Call& call);
// The call neither writes an argument nor makes a storage: its results are views of its arguments, or are
// none.
bool writes_nothing(const Trace& trace, const Call& call);
// The call draws from a generator: a dropout that is off does not.
bool draws_random(const Call& call);

}  // namespace nereid::trace
