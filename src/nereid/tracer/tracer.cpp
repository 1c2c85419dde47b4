#include "nereid/tracer/tracer.h"

#include <cstdlib>

#include "nereid/base/json.h"
#include "nereid/base/json_field.h"
#include "nereid/trace/consistency.h"
#include "nereid/trace/format/codec.h"
#include "nereid/tracer/reference_inputs.h"

namespace nereid::tracer {
namespace {

constexpr size_t kMaxText = size_t{64} << 10;

// The tracer itself failed over the file: it says so in words of its own.
Untraceable tracer_failed(const std::string& words) {
  return {.phase = "answer",
          .type = "",
          .message = "the traced file's process gave no trace: " + words,
          .file = "",
          .line = 0,
          .code = "",
          .traceback = {}};
}

// A module may be larger than a trace can be; that is no forgery. JsonField and the decoder say "at most" of
// every bound.
bool is_too_large(const std::string& message) {
  for (const char* words : {"expected at most ", "nested deeper than ", " levels of nesting"})
    if (message.find(words) != std::string::npos) return true;
  return false;
}

TraceAnswer nonsense(const Error& error) {
  if (is_too_large(error.message)) return tracer_failed(error.message);
  return Forged{"the traced file's process answered what no tracer does: " + error.message};
}

Result<TraceAnswer> decode_untraceable(const JsonField& field) {
  Untraceable failure;
  NEREID_TRY(failure.phase, field.text_at("phase", kMaxText));
  NEREID_TRY(failure.type, field.text_at("type", kMaxText));
  NEREID_TRY(failure.message, field.text_at("message", kMaxText));
  NEREID_TRY(failure.file, field.text_at("file", kMaxText));
  NEREID_TRY(const int64_t line, field.integer_at("line", 0, 0, 1 << 30));
  failure.line = static_cast<int>(line);
  NEREID_TRY(failure.code, field.text_at("code", kMaxText));
  NEREID_TRY(const auto frames, field.find("traceback"));
  if (frames) {
    NEREID_TRY_STATUS(frames->each(1000, [&](const JsonField& frame) -> Status {
      NEREID_TRY(auto text, frame.text(kMaxText));
      failure.traceback.push_back(std::move(text));
      return ok_status();
    }));
  }
  return TraceAnswer(std::move(failure));
}

Result<TraceAnswer> decode_compile_failed(const JsonField& field) {
  CompileFailed failure;
  NEREID_TRY(failure.kernel, field.text_at("kernel", kMaxText));
  NEREID_TRY(failure.message, field.text_at("message", kMaxText));
  NEREID_TRY(failure.file, field.text_at("file", kMaxText));
  NEREID_TRY(const int64_t line, field.integer_at("line", 0, 0, 1 << 30));
  failure.line = static_cast<int>(line);
  NEREID_TRY(failure.code, field.text_at("code", kMaxText));
  return TraceAnswer(std::move(failure));
}

Result<TraceAnswer> decode_document(const Json& document) {
  const JsonField answer(document, "answer");
  if (document.is_object() && document.contains("trace")) {
    NEREID_TRY(auto trace, trace::decode(document["trace"]));
    return TraceAnswer(std::move(trace));
  }
  NEREID_TRY(const auto untraceable, answer.find("untraceable"));
  if (untraceable) return decode_untraceable(*untraceable);
  NEREID_TRY(const auto malformed, answer.find("malformed"));
  if (malformed) {
    NEREID_TRY(auto message, malformed->text_at("message", kMaxText));
    return TraceAnswer(Malformed{std::move(message)});
  }
  NEREID_TRY(const auto compile_failed, answer.find("compile_failed"));
  if (compile_failed) return decode_compile_failed(*compile_failed);
  NEREID_TRY(auto failed, answer.text_at("failed", kMaxText));
  if (!failed.empty()) return TraceAnswer(tracer_failed(failed));
  return input_error("neither a trace nor a reason why there is none");
}

// Python's strings may hold half of a surrogate pair, as a message made of bytes does, and its json writes it
// as an escape, which is no JSON: U+FFFD in its place.
std::string with_whole_surrogates(std::string_view text) {
  std::string out(text);
  const auto unit_at = [&](size_t at) -> unsigned {  // of an escape \uXXXX; 0 where there is none
    if (at + 6 > out.size() || out[at] != '\\' || out[at + 1] != 'u') return 0;
    return static_cast<unsigned>(std::strtoul(out.substr(at + 2, 4).c_str(), nullptr, 16));
  };
  for (size_t at = 0; (at = out.find('\\', at)) != std::string::npos;) {
    const unsigned unit = unit_at(at), next = unit_at(at + 6);
    const bool first = unit >= 0xd800 && unit < 0xdc00, last = unit >= 0xdc00 && unit < 0xe000;
    const bool pair = first && next >= 0xdc00 && next < 0xe000;
    if ((first && !pair) || last) out.replace(at + 2, 4, "fffd");
    at += pair ? 12 : unit > 0 ? 6 : 2;
  }
  return out;
}

Result<Json> parse_answer(std::string_view bytes, std::string_view what) {
  auto document = parse_json(bytes, what);
  return document.ok() ? std::move(document) : parse_json(with_whole_surrogates(bytes), what);
}

TraceAnswer checked_answer(Result<TraceAnswer> answer, const TraceRequest* request) {
  if (!answer.ok()) return nonsense(answer.error());
  const auto* trace = std::get_if<trace::Trace>(&*answer);
  if (trace != nullptr && request != nullptr && request->reference != nullptr)
    if (auto why = trace::find_forgery(*trace, *request->reference, request->calls))
      return Forged{"the trace was not written by the tracer: " + *why};
  return std::move(answer).value();
}

Json json_of(const TraceRequest& request) {
  Json json = {{"source", request.source}, {"path", request.path},       {"class", request.class_name},
               {"draw", request.draw},     {"globals", request.globals}, {"calls", request.calls},
               {"reference", nullptr}};
  if (request.other_numbers) json["other_numbers"] = true;
  if (request.reference != nullptr) json["reference"] = reference_inputs(*request.reference);
  return json;
}

// A source that is not UTF-8 is the file's fault, and Python says so where it reads the replaced character.
std::string text_of(const Json& request) {
  return request.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string encode_request(const TraceRequest& request) { return text_of(json_of(request)); }

TraceAnswer decode_answer(std::string_view bytes, const TraceRequest* request) {
  const auto document = parse_answer(bytes, "the tracer's answer");
  return document.ok() ? checked_answer(decode_document(*document), request) : nonsense(document.error());
}

std::string encode_requests(const std::vector<TraceRequest>& requests) {
  Json all = Json::array();
  for (const auto& request : requests) all.push_back(json_of(request));
  return text_of({{"several", std::move(all)}});
}

std::optional<std::vector<TraceAnswer>> decode_answers(std::string_view bytes,
                                                       const std::vector<TraceRequest>& requests) {
  const auto document = parse_answer(bytes, "the tracer's answers");
  if (!document.ok() || !document->is_object() || !document->contains("several")) return std::nullopt;
  const Json& all = (*document)["several"];
  if (!all.is_array() || all.size() != requests.size()) return std::nullopt;
  std::vector<TraceAnswer> answers;
  for (const auto& one : all)
    answers.push_back(checked_answer(decode_document(one), &requests[answers.size()]));
  return answers;
}

Result<std::unique_ptr<Tracer>> Tracer::start(TracerOptions options) {
  sandbox::ZygoteOptions zygote{.installation = options.installation, .module = options.module};
  zygote.python_path = options.python_path;
  zygote.limits = options.limits;
  zygote.children = options.workers;
  zygote.at_once = options.at_once;
  zygote.accept_weak_isolation = options.accept_weak_isolation;
  NEREID_TRY(auto started, sandbox::Zygote::start(std::move(zygote)));
  return std::unique_ptr<Tracer>(new Tracer(std::move(started)));
}

Result<TraceAnswer> Tracer::trace(const TraceRequest& request, Deadline deadline) {
  NEREID_TRY(auto outcome, zygote_->run(encode_request(request), request.seconds, deadline));
  if (const auto* late = std::get_if<sandbox::OutOfTime>(&outcome))
    return TraceAnswer(TimedOut{late->seconds});
  if (auto* killed = std::get_if<sandbox::Killed>(&outcome))
    return TraceAnswer(Killed{std::move(killed->limit)});
  return decode_answer(std::get<sandbox::Answer>(outcome).bytes, &request);
}

Result<std::vector<TraceAnswer>> Tracer::trace_several(const std::vector<TraceRequest>& requests,
                                                       Deadline deadline) {
  if (requests.empty()) return std::vector<TraceAnswer>();
  double seconds = 0;
  for (const auto& request : requests) seconds += request.seconds;
  NEREID_TRY(const auto outcome, zygote_->run(encode_requests(requests), seconds, deadline));
  if (const auto* answer = std::get_if<sandbox::Answer>(&outcome))
    if (auto all = decode_answers(answer->bytes, requests)) return *std::move(all);
  std::vector<TraceAnswer> alone;
  for (const auto& request : requests) {
    NEREID_TRY(auto answer, trace(request, deadline));
    alone.push_back(std::move(answer));
  }
  return alone;
}

}  // namespace nereid::tracer
