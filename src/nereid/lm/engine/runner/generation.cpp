#include "nereid/lm/engine/runner/generation.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <limits>

#include "nereid/base/check.h"
#include "nereid/lm/engine/runner/uniform.h"

namespace nereid::lm {

uint64_t seed_of_sample(uint64_t seed, int64_t sample) {
  if (sample == 0) return seed;
  // Another counter than uniform_at's: the last word is not zero.
  const auto drawn = philox({static_cast<uint32_t>(sample), static_cast<uint32_t>(sample >> 32), 0, 1},
                            {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return uint64_t{drawn[0]} << 32 | drawn[1];
}

Generation::Generation(Runner& runner, GenerationOptions options)
    : runner_(runner),
      options_(options),
      scheduler_({.blocks = static_cast<BlockId>(runner.options().blocks),
                  .block_size = runner.options().block_size,
                  .max_step_tokens = options.max_step_tokens,
                  .max_sequences = options.max_sequences,
                  .max_length = std::max<int64_t>(max_tokens(), 2),
                  .max_waiting = SIZE_MAX,
                  .vocabulary = runner.config().vocab_size}) {}

// Of a sample, as the model and its block tables allow.
int64_t Generation::max_tokens() const {
  return std::min(runner_.config().max_position_embeddings, runner_.options().max_tokens);
}

Result<size_t> Generation::add(GenerationRequest request) { return enter(std::move(request), {}); }

Result<size_t> Generation::fork(size_t request, int64_t sample, int64_t drawn, GenerationRequest more) {
  const SampleId from = {static_cast<int64_t>(request), sample};
  const auto tokens = scheduler_.tokens_of(from);
  const auto prompt = tokens.empty() ? 0 : static_cast<int64_t>(prompts_.at(from.request));
  if (tokens.empty() || drawn < 0 || prompt + drawn > std::ssize(tokens))
    return input_error("fork: expected at most {} tokens of sample {}/{}, got {}",
                       std::ssize(tokens) - prompt, request, sample, drawn);
  more.prompt.assign(tokens.begin(), tokens.begin() + prompt + drawn);
  const bool turned =
      more.turning_token >= 0 &&
      std::ranges::count(more.prompt.begin() + prompt, more.prompt.end(), more.turning_token) > 0;
  const int64_t samples = more.samples;
  NEREID_TRY(const size_t number, enter(std::move(more), from));
  for (int64_t own = 0; turned && own < samples; ++own) turned_.insert({static_cast<int64_t>(number), own});
  return number;
}

Result<size_t> Generation::enter(GenerationRequest request, std::optional<SampleId> from) {
  const auto& config = runner_.config();
  if (request.prompt.empty()) return input_error("a prompt without tokens: expected at least one");
  for (const int64_t token : request.prompt)
    if (token < 0 || token >= config.vocab_size)
      return input_error("a prompt with token {}: expected 0 to {}", token, config.vocab_size - 1);
  NEREID_CHECK(request.max_new > 0 && request.samples > 0, "at least one token of one sample, got {} of {}",
               request.max_new, request.samples);
  NEREID_CHECK(request.draws.empty() || std::ssize(request.draws) == request.samples,
               "parameters of {} samples, got {}", request.samples, request.draws.size());
  NEREID_CHECK(request.given.empty() || std::ssize(request.given) == request.samples,
               "given tokens of {} samples, got {}", request.samples, request.given.size());
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t room = max_tokens() - prompt;
  if (room < 1)
    return input_error("a prompt of {} tokens: expected fewer than {}, as many as the model's context has",
                       prompt, max_tokens());
  request.max_new = std::min(request.max_new, room);
  // The last token that is drawn is never read.
  const BlockManager& blocks = scheduler_.blocks();
  if (blocks.blocks_for(prompt + request.max_new - 1) > blocks.capacity())
    return input_error("a prompt of {} tokens and {} more: expected at most {}, as many as the cache holds",
                       prompt, request.max_new, blocks.capacity() * blocks.block_size());
  Request scheduled{.prompt = {request.prompt.begin(), request.prompt.end()},
                    .samples = request.samples,
                    .enough = request.enough};
  scheduled.sampling = {.temperature = request.draw.temperature,
                        .top_k = request.draw.top_k,
                        .top_p = request.draw.top_p,
                        .min_p = request.draw.min_p,
                        .seed = request.draw.seed,
                        .max_tokens = request.max_new,
                        .stop_tokens = {request.end_tokens.begin(), request.end_tokens.end()}};
  NEREID_TRY(const int64_t number,
             from ? scheduler_.fork(*from, std::move(scheduled)) : scheduler_.add(std::move(scheduled)));
  request.prompt = {};  // the scheduler has it
  prompts_[number] = static_cast<size_t>(prompt);
  requests_.emplace(number, std::move(request));
  return static_cast<size_t>(number);
}

bool Generation::append(size_t request, int64_t sample, const std::vector<int64_t>& tokens) {
  return scheduler_.append({static_cast<int64_t>(request), sample},
                           std::vector<TokenId>(tokens.begin(), tokens.end()));
}

void Generation::restrict(size_t request, int64_t sample, std::vector<int64_t> allowed) {
  const SampleId id = {static_cast<int64_t>(request), sample};
  if (!allowed.empty() && !scheduler_.tokens_of(id).empty()) allowed_[id] = std::move(allowed);
}

void Generation::cancel(size_t request) {
  const auto number = static_cast<int64_t>(request);
  cancelled_.insert(number);
  scheduler_.cancel(number);
  forget_if_over(number);
}

void Generation::cancel(size_t request, int64_t sample) {
  const SampleId id = {static_cast<int64_t>(request), sample};
  ended_.insert(id);
  scheduler_.cancel(id);
  forget_if_over(id.request);
}

void Generation::stop(size_t request, int64_t sample) {
  for (const Event& event : scheduler_.stop({static_cast<int64_t>(request), sample})) ended_.insert(event.id);
  forget_if_over(static_cast<int64_t>(request));
}

void Generation::forget_if_over(int64_t request) {
  if (scheduler_.knows(request)) return;
  requests_.erase(request);
  prompts_.erase(request);
  turned_.erase(turned_.lower_bound({request, 0}), turned_.lower_bound({request + 1, 0}));
  allowed_.erase(allowed_.lower_bound({request, 0}), allowed_.lower_bound({request + 1, 0}));
}

DrawParameters Generation::parameters_of(SampleId id) const {
  const GenerationRequest& request = requests_.at(id.request);
  DrawParameters own = request.draws.empty() ? request.draw : request.draws[static_cast<size_t>(id.sample)];
  if (request.draws.empty()) own.seed = seed_of_sample(own.seed, id.sample);
  if (turned_.contains(id)) own.temperature = request.turned_temperature;
  return own;
}

// Logits of each sample's own row; the others' tokens have none where a sample is restricted.
at::Tensor Generation::restricted(const at::Tensor& logits, const std::vector<SampleId>& ids) const {
  at::Tensor masked;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto found = allowed_.find(ids[i]);
    if (found == allowed_.end()) continue;
    if (!masked.defined()) masked = logits.clone();
    const auto row = masked.select(0, static_cast<int64_t>(i));
    const auto allowed = at::tensor(found->second).to(logits.device());
    const auto kept = row.index_select(0, allowed);
    row.fill_(-std::numeric_limits<double>::infinity()).index_copy_(0, allowed, kept);
  }
  return masked.defined() ? masked : logits;
}

void Generation::step(const std::function<void(const Token&)>& on_token) {
  ended_.clear();
  cancelled_.clear();
  const Batch& batch = scheduler_.schedule();
  if (batch.step.tokens.empty()) return;
  runner_.copy_blocks(batch.copies);
  auto logits = runner_.forward(batch.step);
  Drawn drawn;
  std::vector<std::vector<Likely>> likely;
  std::vector<SampleId> ids;
  if (!batch.draws.empty()) {
    std::vector<DrawParameters> parameters;
    std::vector<int64_t> rows, reported;
    for (const Draw& draw : batch.draws) {
      const SampleId id = ids.emplace_back(draw.id);
      rows.push_back(static_cast<int64_t>(draw.row));
      DrawParameters& own = parameters.emplace_back(parameters_of(id));
      own.index = static_cast<uint64_t>(draw.index);
      reported.push_back(requests_.at(id.request).likeliest);
    }
    // Samples that begin together draw from one row.
    if (rows.size() > batch.step.wanted.size())
      logits = logits.index_select(0, at::tensor(rows).to(logits.device()));
    drawn = draw(allowed_.empty() ? logits : restricted(logits, ids), parameters);
    for (const SampleId id : ids) allowed_.erase(id);
    likely = likeliest(logits, reported);
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto& given = requests_.at(ids[i].request).given;
      const auto index = static_cast<size_t>(batch.draws[i].index);
      if (given.empty()) continue;
      const auto& own = given[static_cast<size_t>(ids[i].sample)];
      if (index < own.size()) drawn.tokens[i] = own[index];
    }
  }
  const std::vector<TokenId> tokens(drawn.tokens.begin(), drawn.tokens.end());
  const std::vector<Event> events = scheduler_.accept(tokens);
  size_t i = 0;
  for (const Event& event : events) {
    const SampleId id = event.id;
    if (const auto request = requests_.find(id.request); request != requests_.end() &&
                                                         event.token != lm::kNoToken &&
                                                         event.token == request->second.turning_token)
      turned_.insert(id);
    if (event.finish != Finish::kNot) forget_if_over(id.request);
    if (event.token == lm::kNoToken) continue;  // others of its request were enough
    // Events come in the order of the draws, of which some may have come too late.
    while (ids[i] != id) ++i;
    if (ended_.contains(id) || cancelled_.contains(id.request))
      continue;  // by whom an earlier token of this step was handed to
    on_token({.request = static_cast<size_t>(id.request),
              .sample = id.sample,
              .token = drawn.tokens[i],
              .logprob = drawn.logprobs[i],
              .drawn_logprob = drawn.drawn_logprobs[i],
              .last = event.finish != Finish::kNot,
              .likeliest = std::move(likely[i])});
  }
}

}  // namespace nereid::lm
