// Continuous batching over a runner: what lm/engine/scheduler.h decides is computed, and tokens are drawn.
//
// Every step takes each running sample one token further, then fills up with pieces of prompts that are still
// to be read. Samples of one prompt share its blocks, and prompts share what they begin with. Where blocks
// run out the youngest sample gives its own up and is read again later.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/lm/engine/runner/runner.h"
#include "nereid/lm/engine/runner/sampler.h"
#include "nereid/lm/engine/scheduler.h"

namespace nereid::lm {

struct GenerationRequest {
  std::vector<int64_t> prompt;  // at least one token
  int64_t samples = 1;
  int64_t max_new = 256;  // tokens of a sample
  DrawParameters draw =
      {};  // `seed` is the request's: each sample has its own, made of it; `index` is counted
  std::vector<DrawParameters> draws = {};  // of each sample, seeds included, where they are not all `draw`
  // After this token a sample is drawn at another temperature: code after a plan. -1: none.
  int64_t turning_token = -1;
  double turned_temperature = 1;
  // Tokens of each sample that are taken in place of what is drawn, whose log-probabilities stay those of the
  // drawn ones: for measurements of throughput. Empty: none; after its last token a sample draws its own.
  std::vector<std::vector<int64_t>> given = {};
  std::vector<int64_t> end_tokens = {};  // drawing one ends the sample; it is handed out like the others
  int64_t likeliest = 0;  // so many of the most probable tokens are returned with each that is drawn
  int64_t enough =
      0;  // this many ended samples end the others, which hand out nothing more; 0: all run to their end
};

struct Token {
  size_t request = 0;
  int64_t sample = 0;
  int64_t token = 0;
  float logprob = 0, drawn_logprob = 0;  // as in Drawn
  bool last = false;                     // it is an end token, or the sample has as many as it may
  std::vector<Likely> likeliest = {};    // as many as its request asks for
};

struct GenerationOptions {
  int64_t max_sequences = 256;  // that run at a time
  int64_t max_step_tokens = 8192;
};

uint64_t seed_of_sample(uint64_t seed, int64_t sample);

class Generation {
 public:
  // `runner` outlives it, and has no other user meanwhile.
  Generation(Runner& runner, GenerationOptions options);

  // Its number, counted from 0. An error (blamed on the input): the prompt is empty, has tokens that the
  // model has not, or is too long for model or cache.
  Result<size_t> add(GenerationRequest request);
  // A request that goes on from a sample that has not ended: from its prompt and the first `drawn` of its
  // tokens, whose keys and values are shared (Scheduler::fork). `more.prompt` is left empty; its seeds are to
  // differ from the sample's. An error, too: the sample has ended, or has fewer tokens.
  Result<size_t> fork(size_t request, int64_t sample, int64_t drawn, GenerationRequest more);
  // A sample goes on with these tokens, as if it had drawn them; they are not handed out. False, and nothing
  // is done: it has ended, or would be as long as it may be.
  bool append(size_t request, int64_t sample, const std::vector<int64_t>& tokens);
  // A sample's next token is drawn among these alone; its log-probabilities are those of a model that has no
  // others. Nothing is done where the sample has ended, or there are none.
  void restrict(size_t request, int64_t sample, std::vector<int64_t> allowed);
  // Ends all samples of a request, or one; nothing more is handed out of them.
  void cancel(size_t request);
  void cancel(size_t request, int64_t sample);

  // The model's weights were changed in place: keys and values of before are not used for samples that begin
  // from now on. Those that run go on with what they have.
  void weights_changed() { scheduler_.forget_prefixes(); }

  bool idle() const { return !scheduler_.busy(); }
  // Ends a sample whose text is whole: one of those that may be enough.
  void stop(size_t request, int64_t sample);

  // One forward. `on_token` may cancel, stop, add, fork and append.
  void step(const std::function<void(const Token&)>& on_token);

  size_t remembered() const { return requests_.size(); }  // requests that are not over
  int64_t free_blocks() const { return scheduler_.blocks().available(); }
  const Scheduler& scheduler() const { return scheduler_; }

 private:
  int64_t max_tokens() const;
  Result<size_t> enter(GenerationRequest request, std::optional<SampleId> from);
  DrawParameters parameters_of(SampleId id) const;
  at::Tensor restricted(const at::Tensor& logits, const std::vector<SampleId>& ids) const;
  void forget_if_over(int64_t request);

  Runner& runner_;
  GenerationOptions options_;
  Scheduler scheduler_;
  std::map<int64_t, GenerationRequest> requests_;     // those that are not over
  std::map<int64_t, size_t> prompts_;                 // of these, how long their prompts are
  std::set<SampleId> turned_;                         // of these, samples with their turning token after them
  std::map<SampleId, std::vector<int64_t>> allowed_;  // of these, next tokens of restricted samples
  // Since the step whose tokens are being handed out: samples, and requests as a whole.
  std::set<SampleId> ended_;
  std::set<int64_t> cancelled_;
};

}  // namespace nereid::lm
