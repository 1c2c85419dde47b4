#include "nereid/lm/engine/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "tests/support/fake_model.h"
#include "tests/support/times.h"

namespace nereid::lm {
namespace {

using testing::HasSubstr;
using Tokens = std::vector<TokenId>;

Tokens counted(int64_t tokens, TokenId first = 0) {
  Tokens prompt(static_cast<size_t>(tokens));
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = (first + static_cast<TokenId>(i)) % kFakeVocabulary;
  return prompt;
}

// A scheduler with its model, and what every sample has drawn.
struct SchedulerRun {
  explicit SchedulerRun(const SchedulerOptions& options)
      : options(options), scheduler(options), model(options.blocks, options.block_size) {}

  int64_t add(Request request) {
    const auto number = scheduler.add(request);
    EXPECT_TRUE(number.ok()) << (number.ok() ? "" : number.error().message);
    requests[*number] = std::move(request);
    return *number;
  }

  int64_t fork(SampleId from, Request request) {
    const auto number = scheduler.fork(from, request);
    EXPECT_TRUE(number.ok()) << (number.ok() ? "" : number.error().message);
    requests[*number] = std::move(request);
    return *number;
  }

  void step() {
    const Batch& batch = scheduler.schedule();
    if (batch.step.tokens.empty()) return;
    ++steps;
    EXPECT_LE(static_cast<int64_t>(batch.step.tokens.size()), options.max_step_tokens);
    scheduler.check();
    const std::vector<TokenId> tokens = model.run(batch);
    note(scheduler.accept(tokens));
    scheduler.check();
  }

  void note(const std::vector<Event>& events) {
    for (const Event& event : events) {
      EXPECT_EQ(finished.count(event.id), 0u) << "an event after the last";
      if (event.token != lm::kNoToken) drawn[event.id].push_back(event.token);
      if (event.finish != Finish::kNot) finished[event.id] = event.finish;
    }
  }

  void run() {
    for (int64_t i = 0; scheduler.busy(); ++i) {
      step();
      ASSERT_LT(i, 200'000) << "it does not end";
    }
    EXPECT_EQ(scheduler.blocks().available(), scheduler.blocks().capacity());
  }

  // What a sample should have drawn: all of it, or the beginning where others ended it.
  Tokens expected(SampleId id) const {
    const Request& request = requests.at(id.request);
    const auto prompt = static_cast<int64_t>(request.prompt.size());
    const int64_t room =
        std::min(options.max_length, int64_t{options.blocks - 1} * options.block_size + 1) - prompt;
    return fake_continuation(request, id.sample, std::min(request.sampling.max_tokens, room));
  }

  SchedulerOptions options;
  Scheduler scheduler;
  FakeModel model;
  std::map<int64_t, Request> requests;
  std::map<SampleId, Tokens> drawn;
  std::map<SampleId, Finish> finished;
  int64_t steps = 0;
};

TEST(Scheduler, OneRequest) {
  SchedulerRun bench({.blocks = 20, .block_size = 4});
  const int64_t number = bench.add({.prompt = counted(10), .sampling = {.max_tokens = 7}});
  bench.run();
  EXPECT_EQ(bench.drawn.at({number, 0}), bench.expected({number, 0}));
  EXPECT_EQ(bench.drawn.at({number, 0}).size(), 7u);
  EXPECT_EQ(bench.finished.at({number, 0}), Finish::kLength);
  EXPECT_EQ(bench.steps, 7);
  EXPECT_EQ(bench.model.computed(), 16);  // the last token is not
}

TEST(Scheduler, SamplesForkFromOneReadingOfThePrompt) {
  SchedulerRun bench({.blocks = 60, .block_size = 4});
  bench.add({.prompt = counted(10), .sampling = {.max_tokens = 5}, .samples = 6});
  bench.run();
  EXPECT_EQ(bench.model.computed(), 10 + 6 * 4);
  EXPECT_EQ(bench.steps, 5);
  EXPECT_EQ(bench.scheduler.reused(), 5 * 10);
  std::set<Tokens> different;
  for (int64_t sample = 0; sample < 6; ++sample) {
    EXPECT_EQ(bench.drawn.at({0, sample}), bench.expected({0, sample}));
    different.insert(bench.drawn.at({0, sample}));
  }
  EXPECT_EQ(different.size(), 6u);
}

// Each token is drawn after all tokens before it, whether they were drawn or appended, under few blocks too.
TEST(Scheduler, SamplesGoOnWithAppendedTokens) {
  for (const BlockId blocks : {400, 45}) {
    SchedulerRun bench({.blocks = blocks, .block_size = 4, .max_step_tokens = 16});
    std::mt19937 draw(blocks);
    for (int i = 0; i < 6; ++i)
      bench.add(
          {.prompt = counted(3 + 5 * i), .sampling = {.seed = 7, .max_tokens = 60}, .samples = 1 + i % 3});
    std::map<SampleId, Tokens> all, as_drawn;  // what each has, and of it what was appended as -1
    int64_t appended = 0;
    while (bench.scheduler.busy()) {
      const auto before = bench.drawn;
      bench.step();
      for (const auto& [id, tokens] : bench.drawn) {
        const auto old = before.find(id);
        if (old != before.end() && old->second.size() == tokens.size()) continue;
        all[id].push_back(tokens.back()), as_drawn[id].push_back(tokens.back());
        if (draw() % 4 != 0) continue;
        const Tokens more = counted(1 + static_cast<int64_t>(draw() % 9), static_cast<TokenId>(draw() % 50));
        const bool room = all[id].size() + more.size() < 60 && !bench.finished.contains(id);
        EXPECT_EQ(bench.scheduler.append(id, more), room);
        if (!room) continue;
        ++appended;
        all[id].insert(all[id].end(), more.begin(), more.end());
        as_drawn[id].insert(as_drawn[id].end(), more.size(), -1);
      }
      bench.scheduler.check();
    }
    EXPECT_GT(appended, 20);
    EXPECT_EQ(bench.scheduler.preempted() > 0, blocks == 45);
    for (const auto& [id, tokens] : as_drawn) {
      const Request& request = bench.requests.at(id.request);
      EXPECT_EQ(tokens.size(), 60u);
      for (size_t i = 0; i < tokens.size(); ++i) {
        uint64_t chain = 0;
        int64_t position = 0;
        for (const TokenId token : request.prompt) chain = fake_hash(chain, token, position++);
        for (size_t j = 0; j < i; ++j) chain = fake_hash(chain, all[id][j], position++);
        if (tokens[i] < 0) continue;
        EXPECT_EQ(tokens[i], fake_token(chain, request.sampling, id.sample, static_cast<int64_t>(i)));
      }
    }
    EXPECT_FALSE(bench.scheduler.append({0, 0}, counted(1)));
  }
}

TEST(Scheduler, PromptsShareWhatTheyBeginWith) {
  for (const bool share : {false, true}) {
    SchedulerRun bench({.blocks = 60, .block_size = 4, .share_prefixes = share});
    bench.add({.prompt = counted(21), .sampling = {.max_tokens = 1}});
    bench.run();
    bench.add({.prompt = counted(30), .sampling = {.max_tokens = 1}});  // the first five blocks are there
    bench.run();
    bench.add({.prompt = counted(20), .sampling = {.max_tokens = 1}});  // of these one token must be computed
    bench.run();
    EXPECT_EQ(bench.model.computed(), share ? 21 + 10 + 4 : 21 + 30 + 20);
  }
}

TEST(Scheduler, LongPromptsAreReadInPiecesDuringDecoding) {
  SchedulerRun bench({.blocks = 100, .block_size = 4, .max_step_tokens = 8});
  bench.add({.prompt = counted(3), .sampling = {.max_tokens = 30}});
  bench.step();
  bench.add({.prompt = counted(50, 7), .sampling = {.max_tokens = 3}});
  for (int i = 0; i < 5; ++i) {
    const size_t before = bench.drawn.at({0, 0}).size();
    bench.step();
    EXPECT_EQ(bench.drawn.at({0, 0}).size(), before + 1);  // it never waits for the other
  }
  EXPECT_EQ(bench.drawn.count({1, 0}), 0u);
  bench.run();
  EXPECT_EQ(bench.drawn.at({1, 0}), bench.expected({1, 0}));
  EXPECT_EQ(bench.drawn.at({0, 0}), bench.expected({0, 0}));
}

TEST(Scheduler, TheYoungestGiveWayWhereBlocksAreScarce) {
  SchedulerRun bench({.blocks = 9, .block_size = 2, .share_prefixes = false});
  for (int i = 0; i < 4; ++i)
    bench.add({.prompt = counted(4, static_cast<TokenId>(11 * i)), .sampling = {.max_tokens = 9}});
  bench.run();
  EXPECT_GT(bench.scheduler.preempted(), 0);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(bench.drawn.at({i, 0}), bench.expected({i, 0}));
}

TEST(Scheduler, StopTokensAndEnoughSamplesEnd) {
  SchedulerRun bench({.blocks = 100, .block_size = 4});
  Request request = {.prompt = counted(5),
                     .sampling = {.max_tokens = 40, .stop_tokens = {1, 2, 3}},
                     .samples = 8,
                     .enough = 3};
  bench.add(request);
  bench.run();
  int64_t stopped = 0, cancelled = 0;
  for (const auto& [id, finish] : bench.finished)
    stopped += finish == Finish::kStopToken, cancelled += finish == Finish::kCancelled;
  EXPECT_EQ(stopped, 3);
  EXPECT_EQ(cancelled, 5);
  for (const auto& [id, tokens] : bench.drawn) {
    const Tokens whole = bench.expected(id);
    EXPECT_EQ(tokens, Tokens(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(tokens.size())));
  }
}

TEST(Scheduler, CancellingWhoReadsThePromptLeavesItToTheNext) {
  SchedulerRun bench({.blocks = 100, .block_size = 4, .max_step_tokens = 4});
  const int64_t number = bench.add({.prompt = counted(12), .sampling = {.max_tokens = 3}, .samples = 3});
  bench.step();
  bench.scheduler.cancel(SampleId{number, 0});
  bench.scheduler.check();
  bench.run();
  EXPECT_EQ(bench.drawn.count({number, 0}), 0u);
  for (const int64_t sample : {1, 2})
    EXPECT_EQ(bench.drawn.at({number, sample}), bench.expected({number, sample}));
  bench.scheduler.cancel(SampleId{number, 1});  // long gone
}

TEST(Scheduler, ForksGoOnFromASampleWithoutReadingItAgain) {
  for (const bool share : {false, true}) {
    SchedulerRun bench({.blocks = 60, .block_size = 4, .share_prefixes = share});
    const int64_t trunk = bench.add({.prompt = counted(10), .sampling = {.seed = 3, .max_tokens = 9}});
    for (int i = 0; i < 4; ++i) bench.step();  // 14 tokens, of which 13 are computed
    const auto tokens = bench.scheduler.tokens_of({trunk, 0});
    ASSERT_EQ(tokens.size(), 14u);
    const int64_t before = bench.model.computed();
    const Request branch = {
        .prompt = {tokens.begin(), tokens.end()}, .sampling = {.seed = 4, .max_tokens = 3}, .samples = 2};
    const int64_t tip = bench.fork({trunk, 0}, branch);
    bench.scheduler.check();
    bench.step();
    EXPECT_EQ(bench.model.computed(), before + 2);  // one token each: the trunk's own, and the fork's
    Request cut = branch;
    cut.prompt.resize(11), cut.samples = 1;
    const int64_t earlier = bench.fork({trunk, 0}, cut);
    bench.run();
    EXPECT_EQ(bench.model.computed(), before + 5 + (3 + 2) + (share ? 3 : 11) + 2);
    for (const SampleId id : {SampleId{trunk, 0}, SampleId{tip, 0}, SampleId{tip, 1}, SampleId{earlier, 0}})
      EXPECT_EQ(bench.drawn.at(id), bench.expected(id));
    EXPECT_NE(bench.drawn.at({tip, 0}), bench.drawn.at({tip, 1}));
    EXPECT_TRUE(bench.scheduler.tokens_of({trunk, 0}).empty());
    EXPECT_FALSE(bench.scheduler.fork({trunk, 0}, branch).ok());  // it has ended
  }
}

TEST(Scheduler, AForkHasToBeginAsItsSample) {
  SchedulerRun bench({.blocks = 60, .block_size = 4});
  const int64_t trunk = bench.add({.prompt = counted(10), .sampling = {.max_tokens = 9}});
  bench.step();
  const auto other = bench.scheduler.fork({trunk, 0}, {.prompt = counted(9, 1)});
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, HasSubstr("fork: expected a prompt that 0/0 begins with"));
  EXPECT_FALSE(bench.scheduler.fork({trunk, 0}, {.prompt = counted(30)}).ok());
  bench.scheduler.check();
}

TEST(Scheduler, WhatIsRefused) {
  Scheduler scheduler({.blocks = 5, .block_size = 4, .max_length = 12, .max_waiting = 2, .vocabulary = 50});
  const auto refusal = [&](const Request& request) {
    const auto number = scheduler.add(request);
    return number.ok() ? "taken" : number.error().message;
  };
  EXPECT_THAT(refusal({.prompt = {}}), HasSubstr("prompt: expected one token or more"));
  EXPECT_THAT(refusal({.prompt = {1, 50}}), HasSubstr("prompt[1]: expected a token from 0 to 49, got 50"));
  EXPECT_THAT(refusal({.prompt = {-1}}), HasSubstr("prompt[0]"));
  EXPECT_THAT(refusal({.prompt = counted(12)}),
              HasSubstr("prompt: expected fewer than 12 tokens (context 12, cache 16), got 12"));
  EXPECT_THAT(refusal({.prompt = {1}, .samples = 0}), HasSubstr("samples"));
  EXPECT_THAT(refusal({.prompt = {1}, .samples = 2, .enough = 3}),
              HasSubstr("enough: expected 0 (all) to 2 samples, got 3"));
  EXPECT_THAT(refusal({.prompt = {1}, .sampling = {.temperature = -1}}), HasSubstr("temperature"));
  EXPECT_THAT(refusal({.prompt = {1}, .sampling = {.temperature = NAN}}), HasSubstr("temperature"));
  EXPECT_THAT(refusal({.prompt = {1}, .sampling = {.top_k = -1}}), HasSubstr("top_k"));
  EXPECT_THAT(refusal({.prompt = {1}, .sampling = {.top_p = 0}}), HasSubstr("top_p"));
  EXPECT_THAT(refusal({.prompt = {1}, .sampling = {.min_p = 1.5}}),
              HasSubstr("min_p: expected a number from 0 to 1, got 1.5"));
  EXPECT_THAT(refusal({.prompt = {1}, .sampling = {.max_tokens = 0}}), HasSubstr("max_tokens"));
  EXPECT_EQ(refusal({.prompt = {1}}), "taken");
  EXPECT_EQ(refusal({.prompt = counted(11)}), "taken");
  EXPECT_THAT(refusal({.prompt = {1}}), HasSubstr("the queue is full: 2 requests wait"));
  scheduler.cancel(int64_t{0});
  scheduler.check();
  EXPECT_EQ(refusal({.prompt = {1}}), "taken");
}

// Everything at once, in all kinds of narrow places; the books are checked after every operation, the model's
// memory in every step.
TEST(Scheduler, RandomRequestsDrawWhatTheyWouldAlone) {
  for (uint32_t seed = 0; seed < 400 * test_times(); ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
    SchedulerOptions options = {.blocks = static_cast<BlockId>(4 + below(30)),
                                .block_size = 1 + below(5),
                                .share_prefixes = below(4) != 0,
                                .max_step_tokens = 1 + below(below(2) == 0 ? 4 : 40),
                                .max_sequences = 1 + below(9),
                                .max_length = 2 + below(60)};
    SchedulerRun bench(options);
    const int64_t room = std::min(options.max_length, (options.blocks - 1) * options.block_size + 1);
    std::set<SampleId> interfered;
    for (int operation = 0; operation < 120; ++operation) {
      const int64_t kind = below(10);
      const int64_t number = bench.requests.empty() ? 0 : below(static_cast<int64_t>(bench.requests.size()));
      if (kind == 0 && room > 1) {
        // Few beginnings, so that much is shared.
        Request request = {.prompt = counted(1 + below(room - 1), static_cast<TokenId>(below(2)))};
        if (below(3) == 0) request.prompt.back() = static_cast<TokenId>(below(kFakeVocabulary));
        request.sampling = {.seed = random(),
                            .max_tokens = 1 + below(20),
                            .stop_tokens = {static_cast<TokenId>(below(kFakeVocabulary))}};
        request.samples = 1 + below(6);
        request.enough = below(3) == 0 ? below(request.samples + 1) : 0;
        bench.add(std::move(request));
      } else if (kind == 1 && !bench.requests.empty()) {
        const SampleId id = {number, below(6)};
        if (below(2) == 0) {
          bench.scheduler.cancel(id);
          interfered.insert(id);
        } else if (below(4) == 0) {
          bench.scheduler.cancel(number);
          for (int64_t sample = 0; sample < 6; ++sample) interfered.insert({number, sample});
        } else {
          const auto events = bench.scheduler.stop(id);
          bench.note(events);
          for (const Event& event : events) interfered.insert(event.id);
        }
        bench.scheduler.check();
      } else if (kind == 2 && !bench.requests.empty()) {
        const SampleId id = {number, below(6)};
        const auto tokens = bench.scheduler.tokens_of(id);
        if (tokens.empty() || std::ssize(tokens) >= room) continue;
        const auto kept = below(2) == 0 ? std::ssize(tokens) : 1 + below(std::ssize(tokens));
        Request request = {.prompt = {tokens.begin(), tokens.begin() + kept}};
        request.sampling = {.seed = random(), .max_tokens = 1 + below(20)};
        request.samples = 1 + below(3);
        bench.fork(id, std::move(request));
        bench.scheduler.check();
      } else {
        bench.step();
      }
      if (HasFailure()) FAIL() << "seed " << seed;
    }
    bench.run();
    for (const auto& [number, request] : bench.requests)
      for (int64_t sample = 0; sample < request.samples; ++sample) {
        const SampleId id = {number, sample};
        const Tokens whole = bench.expected(id), drawn = bench.drawn[id];
        const bool ended_by_others = interfered.contains(id) || bench.finished[id] == Finish::kCancelled;
        ASSERT_TRUE(ended_by_others ? drawn.size() <= whole.size() : drawn.size() == whole.size())
            << "seed " << seed;
        ASSERT_TRUE(std::equal(drawn.begin(), drawn.end(), whole.begin())) << "seed " << seed;
        ASSERT_TRUE(ended_by_others || bench.finished.contains(id));
      }
  }
}

}  // namespace
}  // namespace nereid::lm
