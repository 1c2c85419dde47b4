// `nereid-lm propose`: a model that is loaded once and answers its parent process; what
// proposers/model_process.h starts.
//
// One JSON object per line. Input:
//   {"id": 3, "messages": [{"role": "user", "content": "..."}], "samples": [0, 1, 2], "seed": 7,
//    "temperature": 1, "top_p": 1, "top_k": 0, "max_tokens": 4096, "enough": 0, "prefill": []}
//        Sample 0 is greedy. The others are drawn, each by the seed and its own number, so a sample does not
//        depend on the other requests. Missing fields are generation_config.json's.
//        `enough`: so many finished samples end the others; 0: all are wanted.
//        `prefill`: texts that answers begin with. Sample s begins with text s, greedily; samples beyond the
//        list begin with the first text.
//        "branches": "at_once" or "after": other samples may branch off the first one's plan and kernels
//        (lm/speculation), at once or after it has ended, and an answer ends with its program.
//   {"cancel": 3}    ends request 3: nothing more is printed for it
//   {"go": true}     with --turns: compute until {"go": false}; {"holds": true} says that it has stopped
// Output, as it happens:
//   {"ready": true, "device": "cpu", "context": 4096}
//   {"id": 3, "sample": 1, "text": "...", "finish": "end", "tokens": 210, "prompt_tokens": 512,
//    "seconds": 1.5}
//        `finish`: "end"; "length": cut; "repeats": the text repeated itself; "program": more could have
//        followed the program; "straggler": cut, since it was much longer than the samples of its request
//        that had ended (lm/engine/stragglers.h). `seconds`: since the request came. With branches also
//        `from`, when the sample began, `branch`, "plan" or "kernel", and `shared`, the number of tokens that
//        it shares with the first sample (of the first: all).
//   {"id": 3, "refused": "..."}    nothing is generated, for this reason
//   {"id": 3, "over": true}        the request has ended
//   {"written": 90, "seconds": 0.5}    every half second: tokens of all requests since the last such line
// A malformed request and the end of the input end the process at once: the parent is gone.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>
#include <ranges>

#include "nereid/base/deadline.h"
#include "nereid/base/json_field.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/lm/chat/chat_template.h"
#include "nereid/lm/cli/command.h"
#include "nereid/lm/cli/engine_options.h"
#include "nereid/lm/cli/loaded_model.h"
#include "nereid/lm/cli/parent_lines.h"
#include "nereid/lm/engine/repetition.h"
#include "nereid/lm/engine/runner/generation.h"
#include "nereid/lm/engine/stragglers.h"
#include "nereid/lm/plan_sizes/size_completion.h"
#include "nereid/lm/speculation/branch_policy.h"
#include "nereid/lm/speculation/trunk.h"
#include "nereid/lm/tokenizer/tokenizer.h"

namespace nereid::lm {
namespace {

constexpr double kPaceSeconds = 0.5;
constexpr int64_t kMaxSampleNumber = int64_t{1} << 40;
constexpr int64_t kMaxCacheBytesOnCpu = int64_t{768} << 20;  // it is written over once at the start
constexpr size_t kMaxPrefill = size_t{64} << 20;

struct ProposeOptions : EngineOptions {
  int64_t max_tokens = 0;
  bool turns = false;
};

struct SampleRequest {
  SampleRequest(int64_t number, const std::shared_ptr<const lm::Tokenizer>& tokenizer)
      : number(number), decoder(tokenizer) {}
  int64_t number = 0, tokens = 0;
  lm::StreamDecoder decoder;
  lm::RepetitionWatch watch;
  std::string text;
  size_t prefill = 0;  // which it begins with
  std::optional<lm::SizeCompletion> sizes;
  // With branches.
  std::optional<lm::Trunk> written;
  double from = 0;     // when it began, since the request
  int64_t shared = 0;  // tokens of the first sample that it begins with
  std::string_view branch;
};

// Samples that go on from a cut of the first one, once that has ended.
struct LaterBranch {
  lm::Cut cut;
  std::vector<size_t> samples;
};

struct Branches {
  lm::BranchStart start;
  lm::BranchPolicy policy;
  lm::SampleId trunk;  // the first sample, as the engine counts
  std::vector<LaterBranch> later;
};

struct GroupRequest {
  int64_t prompt_tokens = 0, enough = 0, done = 0;
  Stopwatch watch;
  std::vector<SampleRequest> samples;
  std::optional<lm::Stragglers> stragglers;  // once there are samples
  std::vector<size_t> requests;              // the engine's numbers
  lm::GenerationRequest usual;               // of each: all but prompt and samples
  uint64_t seed = 0;
  std::vector<std::vector<int64_t>> prompts;  // with each prefill
  std::string task;                           // the last message
  std::optional<Branches> branches;
};

// Samples of a group that begin alike.
struct BranchRequest {
  int64_t group = 0;            // its id
  std::vector<size_t> samples;  // as the engine counts them: places in the group's
};

class Proposing {
 public:
  Proposing(std::shared_ptr<const lm::Tokenizer> tokenizer, const lm::GenerationConfig& said,
            const lm::ChatTemplate& chat, lm::Generation& generation, int64_t max_tokens, bool holds)
      : tokenizer_(tokenizer),
        encoder_(tokenizer),
        completion_(tokenizer),
        said_(said),
        chat_(chat),
        generation_(generation),
        max_tokens_(max_tokens),
        holds_(holds) {}

  Result<Answer> run(ParentLines& lines) {
    while (!interrupted()) {
      const bool waits = holds_ || generation_.idle();
      if (waits) report_pace();
      for (const std::string& line : lines.take(waits)) NEREID_TRY_STATUS(obey(line));
      if (waits) at_work_ = Stopwatch();
      if (holds_) continue;
      generation_.step([&](const lm::Token& token) { take(token); });
      if (at_work_.seconds() >= kPaceSeconds) report_pace();
    }
    return Error{"interrupted", Blame::kInterrupted};
  }

 private:
  Status obey(const std::string& line) {
    NEREID_TRY(const Json document, parse_json(line, "a request"));
    const JsonField root(document, "request");
    NEREID_TRY(const auto go, root.find("go"));
    if (go) {
      NEREID_TRY(const bool goes, go->boolean());
      holds_ = !goes;
      if (holds_) write_to_parent({{"holds", true}});
      return ok_status();
    }
    NEREID_TRY(const auto cancelled, root.find("cancel"));
    if (cancelled) {
      NEREID_TRY(const int64_t id, cancelled->integer());
      drop(id);
      return ok_status();
    }
    NEREID_TRY(const int64_t id, root.integer_at("id", -1, 0, INT64_MAX));
    if (groups_.contains(id)) return root.expected("an id that is not under way");
    const Status added = add(root, id);
    if (added.ok()) return ok_status();
    drop(id);
    write_to_parent({{"id", id}, {"refused", added.error().message}});
    return ok_status();
  }

  // Nothing more is generated for it; it may be over already.
  void drop(int64_t id) {
    const auto found = groups_.find(id);
    if (found == groups_.end()) return;
    for (const size_t key : found->second.requests) {
      generation_.cancel(key);
      requests_.erase(key);
    }
    groups_.erase(found);
  }

  Result<std::vector<std::string>> read_prefills(const JsonField& root) {
    std::vector<std::string> prefills;
    NEREID_TRY(const auto list, root.find("prefill"));
    if (list) {
      NEREID_TRY_STATUS(list->each(1 << 16, [&](const JsonField& field) -> Status {
        NEREID_TRY(prefills.emplace_back(), field.text(kMaxPrefill));
        return ok_status();
      }));
    }
    if (prefills.empty()) prefills.emplace_back();
    return prefills;
  }

  Status add(const JsonField& root, int64_t id) {
    NEREID_TRY(const JsonField messages, root.at("messages"));
    NEREID_TRY(const auto conversation, lm::chat_messages(messages.json(), "request.messages"));
    NEREID_TRY(const std::string text, lm::render_chat(chat_, conversation));
    NEREID_TRY(const auto prefills, read_prefills(root));
    lm::DrawParameters drawn;
    const auto number = [&](const char* name, double otherwise, double& into) -> Status {
      NEREID_TRY(const auto field, root.find(name));
      into = otherwise;
      if (!field) return ok_status();
      NEREID_TRY(into, field->number());
      return ok_status();
    };
    NEREID_TRY_STATUS(
        number("temperature", said_.temperature.value_or(0) > 0 ? *said_.temperature : 1, drawn.temperature));
    NEREID_TRY_STATUS(number("top_p", said_.top_p.value_or(1), drawn.top_p));
    NEREID_TRY(drawn.top_k, root.integer_at("top_k", said_.top_k.value_or(0), 0, 1 << 24));
    NEREID_TRY(const int64_t seed, root.integer_at("seed", 0, INT64_MIN, INT64_MAX));
    NEREID_TRY(const int64_t max_new, root.integer_at("max_tokens", max_tokens_, 1, INT64_MAX));
    GroupRequest& group = groups_[id];
    NEREID_TRY(group.enough, root.integer_at("enough", 0, 0, INT32_MAX));
    group.seed = static_cast<uint64_t>(seed);
    group.usual.end_tokens = said_.eos_token_ids, group.usual.max_new = max_new, group.usual.draw = drawn;
    if (!conversation.empty()) group.task = conversation.back().content;
    for (const std::string& prefill : prefills) {
      std::vector<lm::TokenId> ids;
      NEREID_TRY_STATUS(encoder_.encode(text + prefill, {}, ids));
      group.prompts.emplace_back(ids.begin(), ids.end());
    }
    NEREID_TRY(const auto samples, root.at("samples"));
    NEREID_TRY_STATUS(samples.each(1 << 16, [&](const JsonField& field) -> Status {
      NEREID_TRY(const int64_t sample, field.integer(0, kMaxSampleNumber));
      SampleRequest& own = group.samples.emplace_back(sample, tokenizer_);
      own.prefill = std::cmp_less(sample, prefills.size()) ? static_cast<size_t>(sample) : 0;
      own.text = prefills[own.prefill];
      group.prompt_tokens = std::max(group.prompt_tokens, std::ssize(group.prompts[own.prefill]));
      return ok_status();
    }));
    if (group.samples.empty()) return samples.expected("at least one sample");
    group.stragglers.emplace(std::ssize(group.samples));
    NEREID_TRY(const std::string start, root.text_at("branches"));
    std::vector<size_t> places(group.samples.size());
    std::iota(places.begin(), places.end(), 0);
    if (start.empty()) return begin(id, places);
    if (start != "at_once" && start != "after")
      return input_error("request.branches: expected at_once or after, got '{}'", start);
    return begin_trunk(id, start == "after" ? lm::BranchStart::kAfterTrunk : lm::BranchStart::kAtOnce);
  }

  // Samples of a group, from its question. Those that begin alike are one request of the engine.
  Status begin(int64_t id, const std::vector<size_t>& places) {
    GroupRequest& group = groups_.at(id);
    std::map<size_t, std::vector<size_t>> alike;  // by what they begin with
    for (const size_t place : places) alike[group.samples[place].prefill].push_back(place);
    for (auto& [prefill, own] : alike) {
      lm::GenerationRequest request = request_of(group, own);
      request.prompt = group.prompts[prefill];
      request.enough = std::min(group.enough, request.samples);
      NEREID_TRY(const size_t key, generation_.add(std::move(request)));
      group.requests.push_back(key);
      requests_.emplace(key, BranchRequest{.group = id, .samples = std::move(own)});
    }
    return ok_status();
  }

  static lm::GenerationRequest request_of(GroupRequest& group, const std::vector<size_t>& places) {
    lm::GenerationRequest request = group.usual;
    request.samples = std::ssize(places);
    for (const size_t place : places) {
      SampleRequest& sample = group.samples[place];
      auto& own = request.draws.emplace_back(request.draw);
      own.seed = lm::seed_of_sample(group.seed, sample.number);
      if (sample.number == 0 || sample.prefill > 0) own.temperature = 0;
      sample.from = group.watch.seconds();
      if (group.branches && !sample.written) sample.written.emplace(sample.text);
    }
    return request;
  }

  // The first sample, and with kAtOnce all that do not branch off from it.
  Status begin_trunk(int64_t id, lm::BranchStart start) {
    GroupRequest& group = groups_.at(id);
    std::vector<size_t> own, places = {0};
    for (size_t place = 1; place < group.samples.size(); ++place)
      (group.samples[place].prefill > 0 ? own : places).push_back(place);
    group.branches = {.start = start,
                      .policy = lm::BranchPolicy({places.begin() + 1, places.end()}),
                      .trunk = {},
                      .later = {}};
    places = {0};
    if (start == lm::BranchStart::kAfterTrunk) {
      group.branches->later.push_back({.cut = {}, .samples = std::move(own)});
    } else {
      for (const size_t place : group.branches->policy.fresh()) places.push_back(place);
      places.insert(places.end(), own.begin(), own.end());
    }
    NEREID_TRY_STATUS(begin(id, places));
    for (const size_t key : group.requests)
      if (const auto& own = requests_.at(key).samples; own.front() == 0)
        group.branches->trunk = {.request = static_cast<int64_t>(key), .sample = 0};
    return ok_status();
  }

  // Samples that go on from a cut of the first one, which may have ended.
  Status start_branch_samples(int64_t id, const lm::Cut& cut, const std::vector<size_t>& places) {
    GroupRequest& group = groups_.at(id);
    const lm::Trunk& trunk = *group.samples.front().written;
    for (const size_t place : places) {
      SampleRequest& sample = group.samples[place];
      sample.text = trunk.text().substr(0, cut.text);
      sample.shared = static_cast<int64_t>(cut.tokens);
      sample.branch = to_string(cut.boundary.kind);
    }
    lm::GenerationRequest request = request_of(group, places);
    request.max_new = std::max<int64_t>(1, request.max_new - static_cast<int64_t>(cut.tokens));
    Result<size_t> key = size_t{0};
    if (group.branches->start == lm::BranchStart::kAtOnce) {
      const auto [number, sample] = group.branches->trunk;
      key = generation_.fork(static_cast<size_t>(number), sample, static_cast<int64_t>(cut.tokens),
                             std::move(request));
    } else {
      request.prompt = group.prompts[group.samples.front().prefill];
      const auto tokens = trunk.tokens().first(cut.tokens);
      request.prompt.insert(request.prompt.end(), tokens.begin(), tokens.end());
      key = generation_.add(std::move(request));
    }
    if (!key.ok()) return key.error();
    group.requests.push_back(*key);
    requests_.emplace(*key, BranchRequest{.group = id, .samples = places});
    return ok_status();
  }

  // The first sample came to a boundary.
  void pass(int64_t id, const lm::Cut& cut) {
    Branches& branches = *groups_.at(id).branches;
    auto places = branches.policy.branch_at(cut.boundary.kind);
    if (places.empty()) return;
    if (branches.start == lm::BranchStart::kAfterTrunk)
      branches.later.push_back({.cut = cut, .samples = std::move(places)});
    else if (const auto begun = start_branch_samples(id, cut, places); !begun.ok())
      give_up(id, places);
  }

  // The first sample has ended: what waited for it begins, the newest cut first.
  void start_branches(int64_t id) {
    Branches& branches = *groups_.at(id).branches;
    for (const auto& [cut, places] : std::views::reverse(std::exchange(branches.later, {})))
      if (!places.empty() &&
          !(cut.tokens > 0 ? start_branch_samples(id, cut, places) : begin(id, places)).ok())
        give_up(id, places);
    if (const auto rest = branches.policy.rest(); !rest.empty() && !begin(id, rest).ok()) give_up(id, rest);
  }

  // There is no room for these: they count as written, and nothing is said of them.
  void give_up(int64_t id, const std::vector<size_t>& places) { groups_.at(id).done += std::ssize(places); }

  void report_pace() {
    if (written_ > 0) write_to_parent({{"written", written_}, {"seconds", at_work_.seconds()}});
    written_ = 0;
    at_work_ = Stopwatch();
  }

  void take(const lm::Token& token) {
    ++written_;
    const auto asked = requests_.find(token.request);
    if (asked == requests_.end()) return;
    const int64_t id = asked->second.group;
    GroupRequest& group = groups_.at(id);
    SampleRequest& sample = group.samples[asked->second.samples[static_cast<size_t>(token.sample)]];
    const bool end = std::find(said_.eos_token_ids.begin(), said_.eos_token_ids.end(), token.token) !=
                     said_.eos_token_ids.end();
    ++sample.tokens;
    const std::string added = end ? "" : sample.decoder.push(static_cast<lm::TokenId>(token.token));
    bool whole = write(id, sample, token.token, added, token.last);
    if (said_.complete_sizes && !token.last && !whole) {
      if (!sample.sizes)
        sample.sizes.emplace(group.task, sample.text.substr(0, sample.text.size() - added.size()));
      auto next = sample.sizes->push(added, completion_);
      if (next.tokens.empty() || generation_.append(token.request, token.sample, next.tokens)) {
        generation_.restrict(token.request, token.sample, std::move(next.allowed));
        sample.tokens += std::ssize(next.tokens);
        for (const int64_t own : next.tokens)
          whole |= write(id, sample, own, sample.decoder.push(static_cast<lm::TokenId>(own)), false);
      }
    }
    const bool repeats = !token.last && sample.watch.push(token.token);
    const bool straggles = !token.last && !whole && !repeats && group.stragglers->holds(sample.tokens);
    if (!token.last && !repeats && !whole && !straggles) return;
    if (repeats || straggles || (whole && !token.last)) generation_.cancel(token.request, token.sample);
    if (!whole) sample.text += sample.decoder.finish();
    const char* finish = end         ? "end"
                         : whole     ? "program"
                         : repeats   ? "repeats"
                         : straggles ? "straggler"
                                     : "length";
    if (end || whole) group.stragglers->ended(sample.tokens);
    finished(id, sample, finish);
  }

  // A sample's next token: whether the answer holds its program with it, after which more may come.
  bool write(int64_t id, SampleRequest& sample, int64_t token, const std::string& added, bool last) {
    sample.text += added;
    if (!sample.written) return false;
    bool whole = false;
    for (const lm::Cut& cut : sample.written->push(token, added)) {
      if (cut.boundary.kind == lm::Boundary::Kind::kProgram)
        whole = true, sample.text.resize(cut.boundary.at);
      if (&sample == &groups_.at(id).samples.front() && !last) pass(id, cut);
    }
    return whole;
  }

  void finished(int64_t id, SampleRequest& sample, const char* finish) {
    GroupRequest& group = groups_.at(id);
    Json line = {{"id", id},
                 {"sample", sample.number},
                 {"text", sample.text},
                 {"finish", finish},
                 {"tokens", sample.tokens},
                 {"prompt_tokens", group.prompt_tokens},
                 {"seconds", group.watch.seconds()}};
    const bool trunk = &sample == &group.samples.front();
    if (group.branches) {
      line["from"] = sample.from, line["branch"] = sample.branch;
      line["shared"] = trunk ? std::ssize(sample.written->tokens()) : sample.shared;
    }
    write_to_parent(line);
    ++group.done;
    if (group.branches && trunk) start_branches(id);
    const int64_t wanted = group.enough > 0 ? std::min<int64_t>(group.enough, std::ssize(group.samples))
                                            : std::ssize(group.samples);
    if (group.done < wanted) return;
    write_to_parent({{"id", id}, {"over", true}});
    drop(id);
  }

  std::shared_ptr<const lm::Tokenizer> tokenizer_;
  lm::Encoder encoder_;
  lm::CompletionTokens completion_;
  const lm::GenerationConfig& said_;
  const lm::ChatTemplate& chat_;
  lm::Generation& generation_;
  const int64_t max_tokens_;
  bool holds_;
  int64_t written_ = 0;  // tokens since the last report of the pace
  Stopwatch at_work_;
  std::map<int64_t, GroupRequest> groups_;    // by id
  std::map<size_t, BranchRequest> requests_;  // by the engine's number
};

Result<Answer> propose(const ProposeOptions& options) {
  auto& lines = *new ParentLines;  // first: the parent may end while the model is loaded
  const c10::NoGradGuard no_gradients;
  NEREID_TRY(const auto tokenizer,
             lm::Tokenizer::load(std::filesystem::path(options.model) / "tokenizer.json"));
  NEREID_TRY(auto loaded, load_model(options));
  const lm::Config& config = loaded.weights.config;
  auto& said = loaded.said;
  // What ends a message of a conversation ends an answer, whatever else does.
  NEREID_TRY(const auto chat, lm::read_chat_template(options.model, *tokenizer));
  if (const auto end = tokenizer->find(chat.end_of_message())) said.eos_token_ids.push_back(*end);
  if (said.eos_token_ids.empty())
    return input_error("{}: expected an eos_token_id, or a tokenizer with {}: no answer would end",
                       options.model, chat.end_of_message());
  const int64_t max_new = said.max_new_tokens.value_or(INT64_MAX);
  int64_t longest = options.max_tokens > 0 ? std::min(options.max_tokens, config.max_position_embeddings)
                                           : config.max_position_embeddings;
  const bool on_gpu = loaded.where.is_cuda();
  auto cache = runner_options(options, loaded.where, options.sequences, longest);
  cache.memory_share = on_gpu ? 0.5 : 0.25;
  if (!on_gpu) {
    const int64_t blocks_of_longest = (longest + options.block_size - 1) / options.block_size;
    const int64_t bytes = lm::block_bytes(config, options.block_size, at::kFloat);
    cache.max_blocks =
        std::min(cache.max_blocks, std::max(kMaxCacheBytesOnCpu / bytes, 4 * blocks_of_longest) + 1);
  }
  NEREID_TRY(const auto runner, lm::Runner::create(loaded.weights, *loaded.device, cache));
  lm::Generation generation(*runner,
                            {.max_sequences = options.sequences, .max_step_tokens = options.step_tokens});
  longest = std::min(longest, generation.free_blocks() * options.block_size);  // what little memory holds
  write_to_parent({{"ready", true}, {"device", on_gpu ? "cuda" : "cpu"}, {"context", longest}});
  return Proposing(tokenizer, said, chat, generation, std::min(longest, max_new), options.turns).run(lines);
}

}  // namespace

void add_propose_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<ProposeOptions>();
  auto* command = app.add_subcommand(
      "propose", "A model that answers the program that started it: a JSON object a line, in and out");
  add_model_option(*command, *options);
  command
      ->add_option("--context", options->max_tokens,
                   "Maximum tokens in a sequence (default: the model's limit)")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 24));
  command->add_flag("--turns", options->turns, "Compute only between {\"go\": true} and {\"go\": false}");
  add_engine_options(*command, *options);
  command->callback([options, &chosen] {
    chosen.run = [options]() -> Result<Answer> {
      NEREID_TRY_STATUS(name_model(*options));
      return propose(*options);
    };
  });
}

}  // namespace nereid::lm
