#include "nereid/dataset/harvest_worker.h"

#include <utility>

#include "nereid/base/deadline.h"

namespace nereid::dataset {

Result<std::unique_ptr<HarvestWorker>> HarvestWorker::start(const std::filesystem::path& python,
                                                            Installation installation) {
  if (!python.empty()) installation.python = python;
  sandbox::ZygoteOptions zygote{.installation = installation, .module = "nereid._harvest"};
  zygote.children = 1;
  zygote.limits.memory_bytes = int64_t{8} << 30;
  zygote.limits.cpu_seconds = static_cast<int64_t>(kListSeconds);
  auto worker = std::make_unique<HarvestWorker>();
  NEREID_TRY(worker->zygote_, sandbox::Zygote::start(zygote));
  return worker;
}

Result<HarvestWorker::Reply> HarvestWorker::ask(const Json& request, double seconds) {
  NEREID_TRY(const auto outcome, zygote_->run(request.dump(), seconds, Deadline::after(kWait)));
  Reply reply;
  if (const auto* answer = std::get_if<sandbox::Answer>(&outcome)) {
    auto json = parse_json(answer->bytes, "a child's answer");
    if (!json.ok()) return reply.why = "an answer that is no JSON", reply;
    if (json->is_object() && json->contains("failed") && (*json)["failed"].is_string()) {
      std::string words = (*json)["failed"].get<std::string>();
      while (!words.empty() && words.back() == '\n') words.pop_back();
      return reply.why = words.substr(words.rfind('\n') + 1), reply;
    }
    reply.json = *std::move(json);
  } else if (const auto* late = std::get_if<sandbox::OutOfTime>(&outcome)) {
    reply.why = fmt::format("took longer than {:g} s", late->seconds);
  } else {
    reply.why = "ended by itself or a limit: " + std::get<sandbox::Killed>(outcome).limit;
  }
  return reply;
}

}  // namespace nereid::dataset
