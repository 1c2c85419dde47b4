// How a stage ends a verification: by a fault, or by an answer of the tracer's that is no trace.
#pragma once

#include "nereid/base/result.h"
#include "nereid/tracer/tracer.h"
#include "nereid/verify/verdict.h"

namespace nereid::verify {

// A kind with its evidence, or a fault.
struct Refusal {
  VerdictKind kind;
  Evidence evidence;
  bool input_to_blame = false;
};

Refusal fault(const Error& error);

// What a tracer's answer that is no trace means for the file's author.
Refusal refusal(const tracer::TraceAnswer& answer);

}  // namespace nereid::verify
