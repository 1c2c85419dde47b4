// The tracer's client: a module's source text in, what it did out. The Python runs in a jail (sandbox/), and
// whatever it answers is decoded as hostile input. A trace is only a program; an answer that the tracer does
// not give is `Forged`.
//
//   NEREID_TRY(auto tracer, Tracer::start({.installation = installation}));
//   NEREID_TRY(TraceAnswer answer, tracer->trace({.source = text, .class_name = "Model"},
//   Deadline::after(60)));
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/program/installation.h"
#include "nereid/base/result.h"
#include "nereid/sandbox/zygote/zygote.h"
#include "nereid/trace/trace.h"

namespace nereid::tracer {

struct TraceRequest {
  std::string source;
  std::string path = "model.py";                // the name that places in the trace show
  std::string class_name = "Model";             // Model of a reference, ModelNew of a candidate
  uint64_t draw = 0;                            // the seed for integer inputs
  std::map<std::string, int64_t> globals = {};  // module-level integers to put in place of the file's
  int calls = 3;                                // of forward
  bool other_numbers = false;                   // other Python floats among the file's own inputs
  const trace::Trace* reference = nullptr;      // whose inputs a candidate gets; null: the file's own
  double seconds = 30;                          // of the child, without what it waited for a processor
};

// In the file's words; `line` is 0 where there is none.
struct Untraceable {
  std::string phase, type, message, file;
  int line = 0;
  std::string code;
  std::vector<std::string> traceback;
};
struct Malformed {
  std::string message;
};
struct CompileFailed {
  std::string kernel, message, file;
  int line = 0;
  std::string code;
};
struct TimedOut {
  double seconds = 0;
};
// What no tracer answers: no document of the kinds above, or a trace that cannot be one of this file and
// these inputs (trace/consistency.h). Something in the file's process wrote it.
struct Forged {
  std::string message;  // the end of a sentence, without its full stop
};
struct Killed {
  std::string limit;
};

using TraceAnswer =
    std::variant<trace::Trace, Untraceable, Malformed, CompileFailed, TimedOut, Killed, Forged>;

struct TracerOptions {
  Installation installation;
  int workers = 0;                     // children at a time; 0: one a core
  bool at_once = true;                 // false: their process starts with the first request
  sandbox::Limits limits = {};         // of each child
  bool accept_weak_isolation = false;  // trace even where the kernel allows too few isolation layers
  std::string module = "nereid._tracer.tracer";
  std::vector<std::filesystem::path> python_path = {};
};

// Thread-safe. A lost worker is replaced and the request tried again; lost twice is an Error.
class Tracer {
 public:
  // Starts the worker in the background (some 5 s until it is warm) and returns at once.
  static Result<std::unique_ptr<Tracer>> start(TracerOptions options);

  Result<TraceAnswer> trace(const TraceRequest& request, Deadline deadline);

  // Files of one author, one after the other in one child: a fork for all of them, and a kernel that several
  // of them share goes through Triton once. None of them is kept from the others: what one does to the
  // process it does to those that come after it. Where the child does not answer for all of them (one takes
  // too long, or ends it), each is traced in a child of its own. Answers are in the order of the requests.
  Result<std::vector<TraceAnswer>> trace_several(const std::vector<TraceRequest>& requests,
                                                 Deadline deadline);

  // Waits until the worker is warm. The isolation layers around a traced file.
  Result<sandbox::Isolation> isolation(Deadline deadline) { return zygote_->isolation(deadline); }
  int workers() const { return zygote_->children(); }

 private:
  explicit Tracer(std::unique_ptr<sandbox::Zygote> zygote) : zygote_(std::move(zygote)) {}
  std::unique_ptr<sandbox::Zygote> zygote_;
};

// A request as the worker reads it, and an answer as it came.
std::string encode_request(const TraceRequest& request);
// `request`, where it names a reference, is what a trace must be of.
TraceAnswer decode_answer(std::string_view bytes, const TraceRequest* request = nullptr);
std::string encode_requests(const std::vector<TraceRequest>& requests);
// Nothing where they are not as many as were asked for.
std::optional<std::vector<TraceAnswer>> decode_answers(std::string_view bytes,
                                                       const std::vector<TraceRequest>& requests);

}  // namespace nereid::tracer
