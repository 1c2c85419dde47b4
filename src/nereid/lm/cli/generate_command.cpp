// `nereid generate`: continues prompts with a model.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/json_field.h"
#include "nereid/base/number_option.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/program/progress.h"
#include "nereid/base/program/standard_output.h"
#include "nereid/base/text.h"
#include "nereid/lm/chat/chat_template.h"
#include "nereid/lm/cli/command.h"
#include "nereid/lm/cli/engine_options.h"
#include "nereid/lm/cli/loaded_model.h"
#include "nereid/lm/engine/runner/generation.h"
#include "nereid/lm/engine/stop_matcher.h"
#include "nereid/lm/plan_sizes/size_completion.h"
#include "nereid/lm/tokenizer/tokenizer.h"

namespace nereid::lm {
namespace {

constexpr const char* kGenerateExamples = R"(Examples:
  nereid generate --chat --prompt - < task.py --temperature 0 --max-tokens 4096    the shipped model
  nereid generate --model Qwen3-8B --prompt 'def fibonacci(n):'                  sampled text
  nereid generate --model Qwen3-8B --prompt - < prompt.txt --temperature 0    greedy; prompt from stdin
  nereid generate --model Qwen3-8B --chat --prompt 'What is RMS norm?' --system 'Be brief.'
  nereid generate --model Qwen3-8B --prompt 'A haiku:' -n 8 --seed 1 --json    eight JSON objects
  nereid generate --model Qwen3-8B --prompts prompts.jsonl --json > answers.jsonl
  nereid generate --model Qwen3-8B --prompts prompts.jsonl --json -n 16 --enough 12    12 of 16 samples

MODEL is a folder with config.json, safetensors and tokenizer.json of the Qwen3, Qwen2 (2.5) or Llama 3
family. The shipped model only answers tasks. A line of prompts.jsonl is one of
  {"prompt": "..."}
  {"messages": [{"role": "user", "content": "..."}, ...]}, in the model's chat format; with "prefill": "..."
      each answer begins with that text, and `text` is the rest
  {"tokens": [...]}
The same seed gives the same samples, whatever else is in the batch.

Samples are printed as they end. A JSON object has `index` (of its line, from 0), `sample`, `text`, `tokens`,
`logprobs` (of the model), `drawn_logprobs` (of the sampling distribution), `finish_reason` (end: an end
token, stop: a stop string, length) and `tokens_per_s` (of all samples until then).)";

constexpr size_t kMaxPrompt = size_t{64} << 20;

struct GenerateOptions : EngineOptions {
  std::string prompt, prompts, system;
  bool json = false, ignore_end = false, no_special = false, chat = false, no_thinking = false;
  int64_t samples = 1, enough = 0, max_new = 256, top_k = -1;
  double temperature = -1, top_p = -1, min_p = 0;
  uint64_t seed = 0;
  std::vector<std::string> stops;
  bool complete_sizes = false, no_complete_sizes = false;  // neither: as generation_config.json says
};

struct Prompt {
  std::vector<int64_t> tokens;
  std::string task = {}, begun = {};  // of a conversation: its last message, and the answer's beginning
};

// What is known of one sample.
struct Sample {
  explicit Sample(const std::shared_ptr<const lm::Tokenizer>& tokenizer,
                  const std::vector<std::string>& stops)
      : decoder(tokenizer, /*skip_special=*/true), stops(stops) {}
  lm::StreamDecoder decoder;
  lm::StopMatcher stops;
  std::string text;  // as far as it is certain
  std::vector<int64_t> tokens;
  std::vector<float> logprobs, drawn_logprobs;
  std::optional<lm::SizeCompletion> sizes = {};
};

Result<std::vector<int64_t>> encode(lm::Encoder& encoder, const std::string& text, bool special) {
  std::vector<lm::TokenId> ids;
  NEREID_TRY_STATUS(encoder.encode(text, {.add_special = special}, ids));
  return std::vector<int64_t>(ids.begin(), ids.end());
}

// What prompts become tokens with. A checkpoint whose conversations are not known can still continue texts.
struct Reader {
  lm::Encoder encoder;
  Result<lm::ChatTemplate> chat;
};

Result<std::vector<int64_t>> encode_chat(Reader& reader, const std::vector<lm::ChatMessage>& messages,
                                         const GenerateOptions& options) {
  if (!reader.chat.ok()) return reader.chat.error();
  NEREID_TRY(const std::string text,
             lm::render_chat(*reader.chat, messages, {.thinking = !options.no_thinking}));
  return encode(reader.encoder, text, /*special=*/false);  // it has its own
}

// A text to continue, or with --chat a question.
Result<Prompt> encode_prompt(Reader& reader, const std::string& text, const GenerateOptions& options) {
  Prompt prompt;
  if (!options.chat) {
    NEREID_TRY(prompt.tokens, encode(reader.encoder, text, !options.no_special));
    return prompt;
  }
  std::vector<lm::ChatMessage> messages;
  if (!options.system.empty()) messages.push_back({.role = "system", .content = options.system});
  messages.push_back({.role = "user", .content = text});
  prompt.task = text;
  NEREID_TRY(prompt.tokens, encode_chat(reader, messages, options));
  return prompt;
}

// A line of --prompts.
Result<Prompt> prompt_of(const Json& document, const std::string& where, Reader& reader,
                         const GenerateOptions& options) {
  const JsonField root(document, where);
  Prompt prompt;
  NEREID_TRY(const auto conversation, root.find("messages"));
  if (conversation) {
    NEREID_TRY(const auto messages, lm::chat_messages(conversation->json(), where + ".messages"));
    NEREID_TRY(prompt.tokens, encode_chat(reader, messages, options));
    NEREID_TRY(prompt.begun, root.text_at("prefill", kMaxPrompt));
    NEREID_TRY(const auto begun, encode(reader.encoder, prompt.begun, /*special=*/false));
    prompt.tokens.insert(prompt.tokens.end(), begun.begin(), begun.end());
    if (!messages.empty()) prompt.task = messages.back().content;
    return prompt;
  }
  NEREID_TRY(const auto tokens, root.find("tokens"));
  if (!tokens) {
    NEREID_TRY(const auto field, root.at("prompt"));
    NEREID_TRY(const std::string text, field.text(kMaxPrompt));
    return encode_prompt(reader, text, options);
  }
  NEREID_TRY_STATUS(tokens->each(size_t{1} << 24, [&](const JsonField& token) -> Status {
    NEREID_TRY(const int64_t id, token.integer());
    prompt.tokens.push_back(id);
    return ok_status();
  }));
  return prompt;
}

Result<std::vector<Prompt>> read_prompts(const GenerateOptions& options, Reader& reader) {
  std::vector<Prompt> prompts;
  if (options.prompts.empty()) {
    std::string text = options.prompt;
    if (text == "-") {
      NEREID_TRY(text, read_file("/dev/stdin"));
    }
    NEREID_TRY(prompts.emplace_back(), encode_prompt(reader, text, options));
    return prompts;
  }
  NEREID_TRY(const std::string lines, read_file(options.prompts));
  size_t number = 0;
  for (std::string_view rest = lines; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::string where = fmt::format("{}:{}", options.prompts, ++number);
    if (trimmed(line).empty()) continue;
    NEREID_TRY(const Json document, parse_json(line, where));
    NEREID_TRY(prompts.emplace_back(), prompt_of(document, where, reader, options));
  }
  if (prompts.empty()) return input_error("{}: expected at least one prompt", options.prompts);
  return prompts;
}

// Hands out what is generated: as it comes where there is one sample, else sample by sample.
class Answers {
 public:
  Answers(const GenerateOptions& options, std::shared_ptr<const lm::Tokenizer> tokenizer,
          lm::Generation& generation, int64_t samples, const std::vector<Prompt>& prompts,
          bool complete_sizes)
      : options_(options),
        tokenizer_(std::move(tokenizer)),
        completion_(tokenizer_),
        generation_(generation),
        progress_("generate", samples),
        streams_(samples == 1 && !options.json),
        prompts_(prompts),
        complete_sizes_(complete_sizes) {}

  void take(const lm::Token& token, bool is_end) {
    const auto key = std::pair(token.request, token.sample);
    const auto [found, begins] = samples_.try_emplace(key, tokenizer_, options_.stops);
    Sample& sample = found->second;
    const Prompt& prompt = prompts_[token.request];
    if (begins && complete_sizes_ && !prompt.task.empty()) sample.sizes.emplace(prompt.task, prompt.begun);
    if (std::isnan(token.logprob) && written_.ok())
      written_ = input_error(
          "prompt {}, sample {}: expected numbers for token {}, got NaN: the checkpoint's weights are "
          "broken, or too large for {}",
          token.request, token.sample, sample.tokens.size(),
          options_.dtype.empty() ? "its type" : options_.dtype);
    if (++tokens_ % 16 == 0)
      progress_.suffix(fmt::format("{} tokens, {:.0f} a second", tokens_,
                                   static_cast<double>(tokens_) / watch_.seconds()));
    sample.tokens.push_back(token.token);
    sample.logprobs.push_back(token.logprob);
    sample.drawn_logprobs.push_back(token.drawn_logprob);
    const std::string piece = is_end ? "" : sample.decoder.push(static_cast<lm::TokenId>(token.token));
    std::string certain = sample.stops.push(piece);
    if (sample.sizes && !token.last && !sample.stops.matched())
      certain += complete(token, sample, sample.sizes->push(piece, completion_));
    const bool last = token.last && !sample.stops.matched();
    if (last) {
      certain += sample.stops.push(sample.decoder.finish());
      certain += sample.stops.finish();
    }
    sample.text += certain;
    if (streams_) write(certain);
    if (!last && !sample.stops.matched()) return;
    if (!token.last) generation_.stop(token.request, token.sample);
    finish(key, sample, sample.stops.matched() ? "stop" : is_end ? "end" : "length");
    samples_.erase(key);
  }

  // Whether there were tokens to write, and all of them could be written so far.
  const Status& written() const { return written_; }
  int64_t tokens() const { return tokens_; }
  double seconds() const { return watch_.seconds(); }

 private:
  // Tokens that the sample goes on with: their text.
  std::string complete(const lm::Token& token, Sample& sample, lm::SizeCompletion::Next next) {
    std::string certain;
    if (!next.tokens.empty() && !generation_.append(token.request, token.sample, next.tokens)) return certain;
    generation_.restrict(token.request, token.sample, std::move(next.allowed));
    for (const int64_t id : next.tokens) {
      sample.tokens.push_back(id);
      sample.logprobs.push_back(0);  // nothing was drawn
      sample.drawn_logprobs.push_back(0);
      certain += sample.stops.push(sample.decoder.push(static_cast<lm::TokenId>(id)));
    }
    return certain;
  }

  void write(std::string_view text) {
    if (written_.ok()) written_ = stream_stdout(text);
  }

  void finish(std::pair<size_t, int64_t> key, const Sample& sample, const char* reason) {
    progress_.advance();
    if (options_.json) {
      const Json line = {
          {"index", key.first},          {"sample", key.second},
          {"text", sample.text},         {"tokens", sample.tokens},
          {"logprobs", sample.logprobs}, {"drawn_logprobs", sample.drawn_logprobs},
          {"finish_reason", reason},     {"tokens_per_s", static_cast<double>(tokens_) / watch_.seconds()}};
      write(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    } else if (streams_) {
      write("\n");
    } else {
      write(fmt::format("--- prompt {}, sample {}\n{}\n", key.first, key.second, sample.text));
    }
  }

  const GenerateOptions& options_;
  std::shared_ptr<const lm::Tokenizer> tokenizer_;
  lm::CompletionTokens completion_;
  lm::Generation& generation_;
  Progress progress_;
  const bool streams_;
  const std::vector<Prompt>& prompts_;
  const bool complete_sizes_;
  std::map<std::pair<size_t, int64_t>, Sample> samples_;
  int64_t tokens_ = 0;
  Stopwatch watch_;
  Status written_ = ok_status();
};

lm::RunnerOptions cache_for(const GenerateOptions& options, const LoadedModel& loaded,
                            const std::vector<Prompt>& prompts) {
  size_t longest = 0;
  for (const Prompt& prompt : prompts) longest = std::max(longest, prompt.tokens.size());
  const int64_t max_tokens = std::min(static_cast<int64_t>(longest) + options.max_new,
                                      loaded.weights.config.max_position_embeddings);
  return runner_options(options, loaded.where,
                        std::min(options.sequences, static_cast<int64_t>(prompts.size()) * options.samples),
                        max_tokens);
}

Result<Answer> generate(const GenerateOptions& options) {
  const c10::NoGradGuard no_gradients;
  if (options.prompt.empty() == options.prompts.empty())
    return input_error("expected either --prompt or --prompts");
  if (options.enough > options.samples)
    return input_error("--enough: expected at most {} (--samples), got {}", options.samples, options.enough);
  if (!options.chat && !options.system.empty()) return input_error("--system: expected --chat with it");
  NEREID_TRY(const auto tokenizer,
             lm::Tokenizer::load(std::filesystem::path(options.model) / "tokenizer.json"));
  Reader reader{lm::Encoder(tokenizer), lm::read_chat_template(options.model, *tokenizer)};
  NEREID_TRY(const auto prompts, read_prompts(options, reader));
  NEREID_TRY(const auto loaded, load_model(options));
  const auto& said = loaded.said;
  NEREID_TRY(const auto runner,
             lm::Runner::create(loaded.weights, *loaded.device, cache_for(options, loaded, prompts)));

  lm::GenerationRequest request{
      .prompt = {}, .samples = options.samples, .max_new = options.max_new, .enough = options.enough};
  request.draw = {
      .temperature = options.temperature >= 0 ? options.temperature : said.temperature.value_or(1),
      .top_k = options.top_k >= 0 ? options.top_k : said.top_k.value_or(0),
      .top_p = options.top_p > 0 ? options.top_p : said.top_p.value_or(1),
      .min_p = options.min_p,
      .seed = options.seed};
  if (!options.ignore_end) request.end_tokens = said.eos_token_ids;
  lm::Generation generation(*runner,
                            {.max_sequences = options.sequences, .max_step_tokens = options.step_tokens});
  for (size_t i = 0; i < prompts.size(); ++i) {
    request.prompt = prompts[i].tokens;
    if (const auto added = generation.add(request); !added.ok())
      return input_error("prompt {}: {}", i, added.error().message);
  }
  Answers answers(options, tokenizer, generation, static_cast<int64_t>(prompts.size()) * options.samples,
                  prompts, (options.complete_sizes || said.complete_sizes) && !options.no_complete_sizes);
  while (!generation.idle()) {
    if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
    generation.step([&](const lm::Token& token) {
      const auto& ends = request.end_tokens;
      answers.take(token, std::find(ends.begin(), ends.end(), token.token) != ends.end());
    });
    if (!answers.written().ok() && answers.written().error().blame == Blame::kInterrupted)
      return Answer::kYes;  // no reader is left
    NEREID_TRY_STATUS(answers.written());
  }
  if (!options.json)
    fmt::print(stderr, "{} tokens, {:.1f} a second\n", answers.tokens(),
               static_cast<double>(answers.tokens()) / answers.seconds());
  return Answer::kYes;
}

}  // namespace

void add_generate_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<GenerateOptions>();
  auto* command = app.add_subcommand("generate", "Continue prompts with a language model");
  command->footer(kGenerateExamples);

  command->option_defaults()->group("Prompts");
  command->add_option("--prompt", options->prompt, "Text to continue; - for standard input");
  command->add_option("--prompts", options->prompts, "File of prompts, one JSON object per line");
  command->add_flag("--chat", options->chat, "The prompt is one user message in the model's chat format");
  command->add_option("--system", options->system, "System message of the conversation (default: none)");
  command->add_flag("--no-thinking", options->no_thinking,
                    "Start the answer with an empty <think> block (non-thinking mode)");
  command->add_flag("--no-special", options->no_special, "Add no beginning-of-text token before the prompt");

  command->option_defaults()->group("Sampling");
  command->add_option("-n,--samples", options->samples, "Samples per prompt")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  command->add_option("--max-tokens", options->max_new, "Maximum tokens of a sample")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24))
      ->capture_default_str();
  command
      ->add_option("--temperature", options->temperature,
                   "Sampling temperature; 0: greedy (default: generation_config.json's)")
      ->check(within(0, 100));
  command
      ->add_option("--top-k", options->top_k,
                   "Sample from the k most probable tokens; 0: all (default: generation_config.json's)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 24));
  command
      ->add_option("--top-p", options->top_p,
                   "Sample from the most probable tokens with this total probability (default: "
                   "generation_config.json's)")
      ->check(within(1e-9, 1));
  command
      ->add_option("--min-p", options->min_p,
                   "Drop tokens below this share of the most probable one's probability (default: 0)")
      ->check(within(0, 1));
  command->add_option("--seed", options->seed, "Seed of the samples")->check(a_seed())->capture_default_str();
  command->add_option("--stop", options->stops, "Stop string, not part of the sample; repeatable")
      ->allow_extra_args(false);
  command->add_flag("--ignore-end", options->ignore_end, "Continue after the model's end tokens");
  command
      ->add_option("--enough", options->enough,
                   "Drop a prompt's other samples once this many have ended; 0: keep all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->capture_default_str();

  auto* sizes = command->add_flag("--complete-sizes", options->complete_sizes,
                                  "Compute the sizes of traced steps in plans instead of generating them "
                                  "(default: generation_config.json's complete_sizes)");
  command->add_flag("--no-complete-sizes", options->no_complete_sizes, "Generate all of a plan")
      ->excludes(sizes);

  command->option_defaults()->group("Model");
  add_model_option(*command, *options);
  add_engine_options(*command, *options);

  command->option_defaults()->group("Options");
  command->add_flag("--json", options->json, "Print one JSON object per sample");
  command->callback([options, &chosen] {
    chosen.json = options->json;
    chosen.run = [options]() -> Result<Answer> {
      NEREID_TRY_STATUS(name_model(*options));
      return generate(*options);
    };
  });
}

}  // namespace nereid::lm
