#include "nereid/engine/runner/generation.h"

#include <algorithm>

#include "nereid/base/check.h"
#include "nereid/engine/runner/uniform.h"

namespace nereid::engine {

uint64_t seed_of_sample(uint64_t seed, int64_t sample) {
  if (sample == 0) return seed;
  // Another counter than uniform_at's: the last word is not zero.
  const auto drawn = philox({static_cast<uint32_t>(sample), static_cast<uint32_t>(sample >> 32), 0, 1},
                            {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return uint64_t{drawn[0]} << 32 | drawn[1];
}

Generation::Generation(Runner& runner, GenerationOptions options) : runner_(runner), options_(options) {
  NEREID_CHECK(options_.most_sequences > 0 && options_.most_step_tokens > 0, "at least one sequence and one token");
  for (int64_t block = runner.options().blocks - 1; block > 0; --block) free_.push_back(static_cast<int32_t>(block));
  users_.resize(static_cast<size_t>(runner.options().blocks));
}

int64_t Generation::blocks_for(const GenerationRequest& request) const {
  // The last token that is drawn is never read.
  const int64_t keys = static_cast<int64_t>(request.prompt.size()) + request.most_new - 1, size = runner_.options().block_size;
  return (keys + size - 1) / size;
}

Result<size_t> Generation::add(GenerationRequest request) {
  const auto& config = runner_.config();
  if (request.prompt.empty()) return input_error("a prompt without tokens: expected at least one");
  for (const int64_t token : request.prompt)
    if (token < 0 || token >= config.vocab_size) return input_error("a prompt with token {}: expected 0 to {}", token, config.vocab_size - 1);
  NEREID_CHECK(request.most_new > 0 && request.samples > 0, "at least one token of one sample, got {} of {}", request.most_new, request.samples);
  const int64_t room = std::min(config.max_position_embeddings, runner_.options().most_tokens) - static_cast<int64_t>(request.prompt.size());
  if (room < 1)
    return input_error("a prompt of {} tokens: expected fewer than {}, as many as the model's context has", request.prompt.size(),
                       std::min(config.max_position_embeddings, runner_.options().most_tokens));
  request.most_new = std::min(request.most_new, room);
  if (blocks_for(request) > runner_.options().blocks - 1)
    return input_error("a prompt of {} tokens and {} more: expected at most {}, as many as the cache holds", request.prompt.size(), request.most_new,
                       (runner_.options().blocks - 1) * runner_.options().block_size);
  requests_.push_back(std::move(request));
  for (int64_t sample = 0; sample < requests_.back().samples; ++sample) waiting_.push_back({requests_.size() - 1, sample});
  return requests_.size() - 1;
}

void Generation::cancel(size_t request) {
  std::erase_if(waiting_, [&](const Waiting& w) { return w.request == request; });
  for (auto& sequence : running_)
    if (sequence.request == request) sequence.cancelled = true;
}

void Generation::cancel(size_t request, int64_t sample) {
  std::erase_if(waiting_, [&](const Waiting& w) { return w.request == request && w.sample == sample; });
  for (auto& sequence : running_)
    if (sequence.request == request && sequence.sample == sample) sequence.cancelled = true;
}

// A running sample of the request, whose blocks others may share.
const Generation::Sequence* Generation::reader_of(size_t request) const {
  for (const auto& sequence : running_)
    if (sequence.request == request && !sequence.cancelled) return &sequence;
  return nullptr;
}

void Generation::release(Sequence& sequence) {
  for (const int32_t block : sequence.blocks)
    if (--users_[static_cast<size_t>(block)] == 0) free_.push_back(block);
  sequence.blocks.clear();
}

void Generation::admit() {
  const int64_t size = runner_.options().block_size;
  while (!waiting_.empty() && static_cast<int64_t>(running_.size()) < options_.most_sequences) {
    const auto [number, sample] = waiting_.front();
    const auto& request = requests_[number];
    const auto prompt = static_cast<int64_t>(request.prompt.size());
    // Of the prompt at least its last token is read: its logits are wanted.
    int64_t shared = 0;
    const Sequence* reader = reader_of(number);
    if (reader != nullptr) {
      shared = (prompt - 1) / size;
      if (reader->done < shared * size) return;  // it is still reading: who comes later waits too, so that nobody is overtaken for ever
    }
    const int64_t needed = blocks_for(request) - shared;
    if (static_cast<int64_t>(free_.size()) < needed) return;
    Sequence sequence{.request = number, .sample = sample, .tokens = request.prompt, .done = shared * size, .blocks = {}, .cancelled = false};
    if (reader != nullptr) sequence.blocks.assign(reader->blocks.begin(), reader->blocks.begin() + shared);
    for (int64_t i = 0; i < needed; ++i) sequence.blocks.push_back(free_.back()), free_.pop_back();
    for (const int32_t block : sequence.blocks) ++users_[static_cast<size_t>(block)];
    running_.push_back(std::move(sequence));
    waiting_.pop_front();
  }
}

void Generation::step(const std::function<void(const Token&)>& on_token) {
  running_.remove_if([&](Sequence& sequence) {
    if (sequence.cancelled) release(sequence);
    return sequence.cancelled;
  });
  admit();
  const int64_t size = runner_.options().block_size;
  Step step;
  step.starts = {0};
  std::vector<Sequence*> drawing;
  std::vector<DrawParameters> draws;
  int64_t left = options_.most_step_tokens;
  const auto take = [&](Sequence& s) {
    const auto length = static_cast<int64_t>(s.tokens.size());
    const int64_t piece = std::min(length - s.done, left);
    if (piece == 0) return;
    left -= piece;
    for (int64_t i = 0; i < piece; ++i, ++s.done) {
      step.tokens.push_back(s.tokens[static_cast<size_t>(s.done)]);
      step.positions.push_back(s.done);
      step.slots.push_back(int64_t{s.blocks[static_cast<size_t>(s.done / size)]} * size + s.done % size);
    }
    step.starts.push_back(static_cast<int32_t>(step.tokens.size()));
    step.lengths.push_back(static_cast<int32_t>(s.done));
    step.blocks.emplace_back(s.blocks.begin(), s.blocks.begin() + (s.done + size - 1) / size);
    if (s.done < length) return;
    const auto& request = requests_[s.request];
    step.wanted.push_back(static_cast<int64_t>(step.tokens.size()) - 1);
    drawing.push_back(&s);
    draws.push_back(request.draw);
    draws.back().seed = seed_of_sample(request.draw.seed, s.sample);
    draws.back().index = static_cast<uint64_t>(length) - request.prompt.size();
  };
  const auto decodes = [](const Sequence& s) { return s.done + 1 == static_cast<int64_t>(s.tokens.size()); };
  for (auto& s : running_)
    if (decodes(s)) take(s);
  for (auto& s : running_)
    if (s.done < static_cast<int64_t>(s.tokens.size())) take(s);
  if (step.tokens.empty()) return;

  const auto logits = runner_.forward(step);
  if (drawing.empty()) return;
  const auto drawn = draw(logits, draws);
  for (size_t i = 0; i < drawing.size(); ++i) {
    Sequence& s = *drawing[i];
    s.tokens.push_back(drawn.tokens[i]);
    const auto& request = requests_[s.request];
    const auto& ends = request.end_tokens;
    Token token{.request = s.request, .sample = s.sample, .token = drawn.tokens[i], .logprob = drawn.logprobs[i], .drawn_logprob = drawn.drawn_logprobs[i], .last = false};
    token.last = std::find(ends.begin(), ends.end(), token.token) != ends.end() || static_cast<int64_t>(s.tokens.size() - request.prompt.size()) == request.most_new;
    if (s.cancelled) continue;  // by whom an earlier token of this step was handed to
    s.cancelled = token.last;
    on_token(token);
  }
}

}  // namespace nereid::engine
