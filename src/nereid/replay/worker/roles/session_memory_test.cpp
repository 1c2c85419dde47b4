// Both roles of a session in this process, with everything that PyTorch allocates counted: what memory_plan.h
// says against what is held.
#include <c10/core/CPUAllocator.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "nereid/replay/memory_plan.h"
#include "nereid/replay/message.h"
#include "nereid/replay/worker/cpu_machine.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/roles/role.h"
#include "nereid/replay/worker/types.h"
#include "nereid/trace/format/codec.h"
#include "tests/support/replay_sample.h"

namespace nereid::replay {
namespace {

using namespace trace;

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    auto inner = c10::GetDefaultCPUAllocator()->allocate(bytes);
    void* data = inner.get();
    live_ += static_cast<int64_t>(bytes);
    for (int64_t most = most_; most < live_ && !most_.compare_exchange_weak(most, live_);) {
    }
    auto* held = new Held{std::move(inner), static_cast<int64_t>(bytes), this};
    return {data, held, [](void* context) { delete static_cast<Held*>(context); }, c10::Device(c10::kCPU)};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  // The most that was live since the last question.
  int64_t most() { return most_.exchange(live_); }
  int64_t live() const { return live_; }

 private:
  struct Held {
    ~Held() { allocator->live_ -= bytes; }
    c10::DataPtr data;
    int64_t bytes;
    CountingAllocator* allocator;
  };
  std::atomic<int64_t> live_ = 0, most_ = 0;
};

// A role that is called without a socket.
struct Player {
  Json ask(const char* verb, Json document, std::vector<Fd> descriptors = {}) {
    Message request{std::move(document), std::move(descriptors)};
    given.clear();
    return role->handle(verb, request, given);
  }
  Json load(const Trace& trace, Json document) {
    std::vector<Fd> descriptors;
    descriptors.push_back(sealed_file(serialize(trace)).value());
    descriptors.emplace_back(memfd_create("position", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(descriptors[1].get(), 4096), 0);
    return ask("load", std::move(document), std::move(descriptors));
  }
  std::vector<Fd> block() const {
    std::vector<Fd> out;
    out.emplace_back(dup(given.at(0)));
    return out;
  }
  std::unique_ptr<Role> role;
  std::vector<int> given = {};
};

Trace added(bool reference, int64_t n, const char* op) {
  return sample_task(reference, n, [=](Sketch& s, const TaskTensors& t) {
    const auto sum = s.tensor({n}), out = s.tensor({n});
    s.step(make_call(op, {tensor_arg(t.x), tensor_arg(t.y)}, tensor_arg(sum)));
    s.step(make_call("aten::relu", {tensor_arg(sum)}, tensor_arg(out)));
    return tensor_arg(out);
  });
}

// Frugal or not; a candidate that is right or not.
class SessionMemoryTest : public testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(SessionMemoryTest, NoMomentTakesMoreThanIsPlanned) {
  constexpr int64_t kN = int64_t{1} << 23;
  const auto [frugal, right] = GetParam();
  static CountingAllocator allocator;
  c10::SetCPUAllocator(&allocator, 10);
  const ReplayMode mode;
  const auto machine = make_cpu_machine();
  Player reference{make_reference_role(*machine)}, candidate{make_candidate_role(*machine)};
  const int64_t before = allocator.live();
  const auto r = reference.load(added(true, kN, "aten::add.Tensor"), {{"threads", 1}});
  const Json none = Json::array(), states = Json::array({0}), calls = Json::array({2});
  const auto c = candidate.load(added(false, kN, right ? "aten::add.Tensor" : "aten::sub.Tensor"),
                                {{"threads", 1},
                                 {"compared", true},
                                 {"may_keep_inputs", r.at("keeps_inputs")},
                                 {"states", states},
                                 {"inputs_written", r.at("inputs_written")},
                                 {"watched", Json::array()}});
  const auto planned = reference.ask("plan", {{"states", states}, {"calls", calls}});
  TaskFootprint task;
  planned.at("own").get_to(task.reference.own);
  task.reference.upcast = planned.at("upcast").get<Footprint>();
  planned.at("outputs").get_to(task.reference.outputs);
  planned.at("upcast_outputs").get_to(task.reference.upcast_outputs);
  planned.at("moved").get_to(task.reference.moved);
  planned.at("inputs_block").get_to(task.inputs_block);
  c.at("footprint").get_to(task.candidate);
  c.at("outputs_block").get_to(task.outputs_block);
  task.device = Device::kCuda;  // without the sanitizer's part, which is not PyTorch's to allocate
  EXPECT_EQ(task.inputs_block, 3 * 4 * kN);
  EXPECT_EQ(task.reference.moved, 3 * 4 * kN);
  const auto moments = plan_memory(task, frugal);
  const int64_t blocks = task.inputs_block + task.outputs_block;
  const auto expect_within = [&](std::initializer_list<size_t> which) {
    int64_t planned_bytes = 0;
    for (const auto i : which) planned_bytes = std::max(planned_bytes, moments[i].bytes);
    const int64_t held = allocator.most() - before + blocks;
    EXPECT_LE(held, planned_bytes + (1 << 20)) << moments[*which.begin()].what;
    EXPECT_GE(held, planned_bytes * 4 / 10) << moments[*which.begin()].what;
  };

  reference.ask("share", {{"states", states}, {"calls", calls}, {"frugal", frugal}});
  candidate.ask("attach", {{"calls", calls}, {"frugal", frugal}}, reference.block());
  const Json shape = {{"dtype", "f32"}, {"sizes", {kN}}};
  reference.ask("attach", {{"outputs", Json::array({shape})}, {"state", Json::array()}}, candidate.block());
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const auto rest = [&](Player& player) {
      if (frugal) player.ask("rest", {});
    };
    const auto trial = to_json(
        Trial{.seed = seed, .distribution = seed == 1 ? InputDistribution::kOwn : InputDistribution::kRamp});
    rest(candidate);
    allocator.most();
    reference.ask("prepare", {{"trial", trial}});
    if (seed == 2) expect_within({0});
    rest(reference);
    allocator.most();
    candidate.ask("run", {{"seed", seed}, {"sanitize", true}, {"seconds", 60}, {"alternatives", none}});
    expect_within({1});
    rest(candidate);
    allocator.most();
    const auto judged = reference.ask(
        "judge", {{"trial", trial}, {"tolerance", to_json(Tolerance{})}, {"paths", {"output"}}});
    EXPECT_EQ(judged.at("comparison").at("agrees").get<bool>(), right) << judged.dump();
    if (right)
      expect_within({2, 3, 4});
    else
      expect_within({2, 3, 4, 5});
    if (frugal) {
      EXPECT_LT(allocator.live() - before, kMaxRemembered) << "all inputs lie in the block";
    }
  }
  c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), 10);
}

INSTANTIATE_TEST_SUITE_P(Plans, SessionMemoryTest,
                         testing::Values(std::tuple(false, true), std::tuple(true, true),
                                         std::tuple(true, false)));

// The 20 GB task of tests/gpu/memory.py: relu over half of them.
TEST(MemoryPlanTest, ALargeTaskTakesThreeTimesItself) {
  constexpr int64_t kHalf = int64_t{10} << 30;
  TaskFootprint task;
  task.device = Device::kCuda;
  task.reference = {.own = {.start = 2 * kHalf, .standing = kHalf, .forward = 2 * kHalf},
                    .upcast = Footprint{.standing = 2 * kHalf, .forward = 4 * kHalf},
                    .outputs = kHalf,
                    .upcast_outputs = 2 * kHalf,
                    .moved = kHalf};
  task.candidate = {.start = kHalf, .standing = kHalf, .forward = 2 * kHalf};
  task.inputs_block = task.outputs_block = kHalf;
  const auto moments = plan_memory(task, true);
  EXPECT_EQ(moments[2].bytes, 6 * kHalf);
  EXPECT_LE(largest(moments).bytes, 9 * kHalf + (int64_t{1} << 30));
  EXPECT_GT(largest(plan_memory(task, false)).bytes, largest(moments).bytes);
}

}  // namespace
}  // namespace nereid::replay
