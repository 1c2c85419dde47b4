#include "nereid/proposers/inductor.h"

#include <algorithm>

#include "nereid/base/json.h"
#include "nereid/base/json_field.h"
#include "nereid/trace/format/codec.h"

namespace nereid::proposers {
namespace {

constexpr double kSeconds = 120;  // of one lowering: large modules take tens of seconds
constexpr size_t kMaxText = size_t{8} << 20;

}  // namespace

std::string inductor_request(const trace::Trace& trace, bool native_matmul) {
  Json document = trace::encode(trace);
  Json forward = document["phases"].back();
  document["phases"] = Json::array({std::move(forward)});
  for (Json& storage : document["storages"]) storage.erase("data");
  document.erase("kernels");
  return Json{{"trace", std::move(document)}, {"native_matmul", native_matmul}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

Result<std::unique_ptr<InductorProposer>> InductorProposer::start(const Installation& installation,
                                                                  int workers, Asked asked) {
  sandbox::ZygoteOptions options{.installation = installation, .module = "nereid._inductor.inductor"};
  options.children = workers;
  options.needs_scratch = true;
  options.limits.memory_bytes = int64_t{8} << 30;
  options.max_answer_bytes = kMaxText * 2;
  NEREID_TRY(auto zygote, sandbox::Zygote::start(std::move(options)));
  return std::unique_ptr<InductorProposer>(new InductorProposer(std::move(zygote), asked));
}

Result<Answer> InductorProposer::propose(const Request& request, Deadline deadline) {
  if (asked_ == Asked::kCompile) return ask(request, false, deadline);
  const Stopwatch watch;
  NEREID_TRY(Answer answer, ask(request, true, deadline));
  NEREID_TRY(Answer other, ask(request, false, deadline));
  const bool same = !answer.proposals.empty() && !other.proposals.empty() &&
                    answer.proposals[0].text == other.proposals[0].text;
  if (same)
    answer.proposals[0].variant.clear(), answer.proposals[0].plan = "Inductor's fusion";
  else
    for (auto& proposal : other.proposals) answer.proposals.push_back(std::move(proposal));
  if (!answer.proposals.empty()) answer.declined.clear();
  answer.cost.seconds = watch.seconds();
  return answer;
}

Result<Answer> InductorProposer::ask(const Request& request, bool native_matmul, Deadline deadline) {
  const Stopwatch watch;
  Answer answer;
  NEREID_TRY(auto outcome, zygote_->run(inductor_request(*request.trace, native_matmul), kSeconds, deadline));
  if (const auto* late = std::get_if<sandbox::OutOfTime>(&outcome)) {
    answer.declined =
        fmt::format("Inductor was not done within {:.3g} s", std::min(late->seconds, watch.seconds()));
    return answer;
  }
  if (const auto* killed = std::get_if<sandbox::Killed>(&outcome)) {
    answer.declined = "Inductor's process was stopped: " + killed->limit;
    return answer;
  }
  // From here on as from anybody: bytes that a process sent which has seen what a stranger's module did.
  const auto read = [&]() -> Status {
    NEREID_TRY(const Json json,
               parse_json(std::get<sandbox::Answer>(outcome).bytes, "Inductor's worker's answer"));
    const JsonField root(json, "answer");
    NEREID_TRY(answer.declined, root.text_at("declined"));
    if (answer.declined.empty()) {
      NEREID_TRY(answer.declined, root.text_at("failed"));
    }
    NEREID_TRY(const std::string imports, root.text_at("imports", kMaxText));
    NEREID_TRY(const std::string classes, root.text_at("classes", kMaxText));
    if (!classes.empty())
      answer.proposals.push_back(
          {.text = imports + "\n" + request.source + "\n\n" + classes,
           .plan = native_matmul ? "Inductor's fusion, matrix products in Triton"
                                 : "Inductor's fusion, matrix products and convolutions by PyTorch",
           .variant = native_matmul ? "native_matmul" : ""});
    else if (answer.declined.empty())
      answer.declined = "Inductor's worker gave neither code nor a reason";
    return ok_status();
  };
  if (const auto status = read(); !status.ok()) answer.declined = status.error().message;
  return answer;
}

}  // namespace nereid::proposers
