#include "nereid/replay/worker/roles/role.h"

#include <ATen/Parallel.h>
#include <sys/mman.h>

#include "nereid/replay/worker/types.h"
#include "nereid/trace/format/codec.h"
#include "nereid/trace/limits.h"

namespace nereid::replay {

void load(Loaded& loaded, Message& request, Machine& machine, ProgramOptions options) {
  auto& fds = request.descriptors;
  if (fds.size() < 2) throw std::runtime_error("load: expected a trace and a position");
  auto bytes = read_sealed_file(fds[0].get(), size_t{256} << 20);
  if (!bytes.ok()) throw std::runtime_error(bytes.error().message);
  auto trace = trace::parse(*bytes, "the trace");
  if (!trace.ok()) throw std::runtime_error(trace.error().message);
  void* shared = mmap(nullptr, sizeof(Position), PROT_READ | PROT_WRITE, MAP_SHARED, fds[1].get(), 0);
  if (shared == MAP_FAILED) throw std::runtime_error("cannot map the position");
  loaded.position = {static_cast<Position*>(shared), [](Position* p) { munmap(p, sizeof(Position)); }};
  loaded.trace = std::move(trace).value();
  at::set_num_threads(request.document.value("threads", 1));
  loaded.program = Program::prepare(loaded.trace, machine, options);
  loaded.replay = std::make_unique<Replay>(*loaded.program, machine, loaded.position.get());
}

namespace {

Json failed(Failure::Kind kind, const std::string& message, const std::optional<Where>& where = {}) {
  return {{"failure", to_json(Failure{kind, where.value_or(Where{}), message})}};
}

Json answer(std::unique_ptr<Role>& role, const std::function<std::unique_ptr<Role>()>& make, Message& request,
            std::vector<int>& descriptors) {
  try {
    const ReplayMode mode;
    const auto verb = request.document.at("do").get<std::string>();
    if (verb == "load" || verb == "forget" || !role) {
      role.reset();
      role = make();
    }
    if (verb == "forget") return {{"ok", true}};
    return role->handle(verb, request, descriptors);
  } catch (const Failed& error) {
    return failed(error.kind, error.what(), error.where);
  } catch (const c10::Error& error) {
    return {{"error", error.what_without_backtrace()}};
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

void serve(int socket, const std::function<std::unique_ptr<Role>()>& make) {
  std::unique_ptr<Role> role;
  while (true) {
    auto request = receive_message(socket, Deadline::never());
    if (!request.ok()) return;
    std::vector<int> descriptors;
    const auto document = answer(role, make, *request, descriptors);
    if (!send_message(socket, document, descriptors).ok()) return;
  }
}

void serve(int socket, Role& role) {
  struct Borrowed : Role {
    explicit Borrowed(Role& role) : role(role) {}
    Json handle(const std::string& verb, Message& request, std::vector<int>& descriptors) override {
      return role.handle(verb, request, descriptors);
    }
    Playing playing() override { return role.playing(); }
    void copy_outputs() override { role.copy_outputs(); }
    Role& role;
  };
  serve(socket, [&] { return std::make_unique<Borrowed>(role); });
}

}  // namespace nereid::replay
