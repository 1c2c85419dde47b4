#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nereid/replay/worker/roles/role.h"
#include "nereid/replay/worker/types.h"
#include "nereid/trace/format/codec.h"

namespace nereid::replay {
namespace {

// out = x @ w + x, the sum by a kernel where the candidate plays. 64 x 64.
constexpr const char* kTrace =
    R"({"nereid_trace": 1, "file": "warm_up.py", "class": "Model", "draw": 0, "seconds": 0,
 "storages": [{"bytes": 16384, "role": "parameter", "name": "w"},
  {"bytes": 16384, "role": "input", "name": "0"},
   {"bytes": 16384}, {"bytes": 16384}],
 "values": [{"s": 0, "t": "f32", "n": [64, 64], "d": [64, 1], "o": 0},
   {"s": 1, "t": "f32", "n": [64, 64], "d": [64, 1], "o": 0},
   {"s": 2, "t": "f32", "n": [64, 64], "d": [64, 1], "o": 0},
   {"s": 3, "t": "f32", "n": [64, 64], "d": [64, 1], "o": 0}],
 "kernels": [KERNEL],
 "phases": [{"phase": "module", "call": 0, "steps": []},
   {"phase": "init", "call": 0, "steps": [{"call": "aten::ones", "args": [[64, 64]], "result": {"v": 0}}]},
   {"phase": "make_inputs", "call": 0, "inputs": [], "steps": []},
   {"phase": "forward", "call": 0, "inputs": [], "steps": []},
   {"phase": "make_inputs", "call": 1, "inputs": [], "steps": []},
   {"phase": "forward", "call": 1, "inputs": [], "steps": []},
   {"phase": "make_inputs", "call": 2, "inputs": [{"v": 1}], "steps": [INPUT]},
   {"phase": "forward", "call": 2, "inputs": [{"v": 1}], "output": {"v": 3}, "steps": [
     {"call": "aten::mm", "args": [{"v": 1}, {"v": 0}], "result": {"v": 2}}, STEP]}],
 "state": [{"name": "w", "value": 0, "parameter": true}], "init_inputs": [], "flags": {}, "notes": []})";
constexpr const char* kKernel = R"(module {
  tt.func public @sum(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %o: !tt.ptr<f32>) attributes {noinline = false} {
    %c512_i32 = arith.constant 512 : i32
    %0 = tt.get_program_id x : i32
    %1 = arith.muli %0, %c512_i32 : i32
    %2 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
    %3 = tt.splat %1 : i32 -> tensor<512xi32>
    %4 = arith.addi %3, %2 : tensor<512xi32>
    %5 = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %6 = tt.addptr %5, %4 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    %7 = tt.load %6 : tensor<512x!tt.ptr<f32>>
    %8 = tt.splat %y : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %9 = tt.addptr %8, %4 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    %10 = tt.load %9 : tensor<512x!tt.ptr<f32>>
    %11 = arith.addf %7, %10 : tensor<512xf32>
    %12 = tt.splat %o : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %13 = tt.addptr %12, %4 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    tt.store %13, %11 : tensor<512x!tt.ptr<f32>>
    tt.return
  }
})";

std::string replaced(std::string text, const std::string& word, const std::string& by) {
  return text.replace(text.find(word), word.size(), by);
}

std::string trace_text(bool reference) {
  const auto kernel = Json{{"name", "sum"}, {"ttir", kKernel}, {"options", {{"num_warps", 4}}}}.dump();
  auto text = replaced(kTrace, "KERNEL", reference ? "" : kernel);
  text = replaced(text, "INPUT",
                  reference ? R"({"call": "aten::randn", "args": [[64, 64]], "result": {"v": 1}})" : "");
  return replaced(text, "STEP",
                  reference
                      ? R"({"call": "aten::add.Tensor", "args": [{"v": 2}, {"v": 1}], "result": {"v": 3}})"
                      : R"({"call": "aten::empty_like", "args": [{"v": 2}], "result": {"v": 3}},
     {"launch": [{"kernel": 0, "grid": [8, 1, 1],
      "args": [{"p": 2, "o": 0}, {"p": 1, "o": 0}, {"p": 3, "o": 0}]}]})");
}

// One role, asked without a socket.
class Player {
 public:
  Player(std::unique_ptr<Role> role, bool reference) : role_(std::move(role)), reference_(reference) {}

  Json ask(const char* verb, Json document, std::vector<Fd> descriptors = {}) {
    Message request{std::move(document), std::move(descriptors)};
    given.clear();
    return role_->handle(verb, request, given);
  }
  Json load(Json document) {
    auto file = sealed_file(trace_text(reference_));
    Fd position(memfd_create("nereid-position", MFD_CLOEXEC));
    if (!file.ok() || ftruncate(position.get(), 4096) != 0) throw std::runtime_error("no memory files");
    std::vector<Fd> descriptors;
    descriptors.push_back(std::move(file).value());
    descriptors.push_back(std::move(position));
    return ask("load", std::move(document), std::move(descriptors));
  }
  std::vector<Fd> block() const {
    std::vector<Fd> out;
    out.emplace_back(dup(given.at(0)));
    return out;
  }

  std::vector<int> given;  // with the last answer

 private:
  std::unique_ptr<Role> role_;
  bool reference_;
};

}  // namespace

void warm_up(Machine& machine) {
  const ReplayMode mode;
  Player reference(make_reference_role(machine), true), candidate(make_candidate_role(machine), false);
  const auto r = reference.load({{"threads", 1}});
  candidate.load({{"threads", 1},
                  {"compared", true},
                  {"may_keep_inputs", r.at("keeps_inputs")},
                  {"states", {0}},
                  {"inputs_written", r.at("inputs_written")},
                  {"watched", Json::array()}});
  reference.ask("plan", {{"states", {0}}, {"calls", {2}}});
  reference.ask("share", {{"states", {0}}, {"calls", {2}}, {"frugal", false}});
  candidate.ask("attach", {{"calls", {2}}, {"frugal", false}}, reference.block());
  auto outputs = candidate.block();
  const Json shape = {{"dtype", "f32"}, {"sizes", {64, 64}}};
  reference.ask("attach", {{"outputs", Json::array({shape})}, {"state", Json::array()}}, std::move(outputs));
  const auto trial = to_json(Trial{.seed = 1});
  reference.ask("prepare", {{"trial", trial}});
  const auto run = candidate.ask(
      "run", {{"seed", 1}, {"sanitize", true}, {"seconds", 60}, {"alternatives", Json::array()}});
  const auto judged =
      reference.ask("judge", {{"trial", trial}, {"tolerance", to_json(Tolerance{})}, {"paths", {"output"}}});
  candidate.ask("leave_out", {{"steps", {2}}, {"seconds", 60}});
  if (!judged.at("comparison").at("agrees").get<bool>() || run.at("finding_count") != 0)
    throw std::runtime_error("the warm-up does not agree with itself: " + judged.dump());
}

}  // namespace nereid::replay
