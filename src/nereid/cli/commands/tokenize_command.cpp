#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <iterator>
#include <memory>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/text.h"
#include "nereid/cli/command.h"
#include "nereid/cli/output.h"
#include "nereid/lm/chat/chat_template.h"
#include "nereid/lm/text/utf8.h"
#include "nereid/lm/tokenizer/tokenizer.h"
#include "nereid/lm/tokenizer/trainer.h"

namespace nereid::cli {
namespace {

using lm::TokenId;

constexpr const char* kTokenizeExamples = R"(Examples:
  nereid tokenize -t tokenizer.json model.py           the ids of a file, in one line
  echo -n Hello | nereid tokenize -t tokenizer.json    ... of standard input
  nereid tokenize -t tokenizer.json --count *.py       how many tokens each file has
  nereid tokenize -t tokenizer.json --decode ids.txt   the text of ids, separated by white space or commas
  nereid tokenize -t tokenizer.json --chat chat.json   the prompt of [{"role": "user", "content": "Hi"}]
  nereid tokenize --train --vocab 32768 --special '<|endoftext|>' -o tokenizer.json *.txt    a new vocabulary

tokenizer.json comes with a model (Qwen 2 to 3, Llama 3 and others with byte-level BPE). Invalid UTF-8 counts
as U+FFFD. The chat format is that of chat_template.jinja or tokenizer_config.json in the same folder: Qwen
3's, Qwen 2.5's or Llama 3's.)";

struct TokenizeOptions {
  std::string tokenizer;
  std::vector<std::string> files;
  bool decode = false, count = false, nul = false, skip_special = false, chat = false, train = false;
  lm::EncodeOptions encode;
  lm::ChatTemplate chat_template;
  lm::ChatOptions chat_options;
  lm::TrainerOptions trainer;
  std::string phrase_words, whole_phrases;
  std::string like = "qwen", output;
};

Result<std::string> read_input(const std::string& file) {
  if (file != "-") return read_file(file);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

// "[1, 2]", "1 2" or "1,2".
Result<std::vector<TokenId>> ids_from(std::string_view text, const std::string& file) {
  std::vector<TokenId> ids;
  constexpr std::string_view kBetween = " \t\r\n,[]";
  for (size_t at = text.find_first_not_of(kBetween); at < text.size();
       at = text.find_first_not_of(kBetween, at)) {
    const std::string_view word = text.substr(at, text.find_first_of(kBetween, at) - at);
    TokenId id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size())
      return input_error("{}: expected ids at byte {}, got '{}'", file, at, word.substr(0, 40));
    ids.push_back(id);
    at += word.size();
  }
  return ids;
}

// One text: a file, or what is between two NULs of one.
Status answer_one(const lm::Tokenizer& tokenizer, lm::Encoder& encoder, const TokenizeOptions& options,
                  bool json, const std::string& file, std::string_view text) {
  Json line = {{"file", file}};
  if (options.decode) {
    NEREID_TRY(const std::vector<TokenId> ids, ids_from(text, file));
    std::string decoded = tokenizer.decode(ids, options.skip_special);
    if (!json) return write_stdout(options.nul ? decoded + '\0' : decoded);
    line["text"] = std::move(decoded);
    return write_stdout(json_line(line));
  }
  std::string prompt;
  if (options.chat) {
    NEREID_TRY(const Json document, parse_json(text, file));
    NEREID_TRY(const auto messages, lm::chat_messages(document, file));
    NEREID_TRY(prompt, lm::render_chat(options.chat_template, messages, options.chat_options));
    text = prompt;
    line["text"] = prompt;
  }
  std::vector<TokenId> ids;
  auto encode = options.encode;
  if (options.chat) encode.add_special = false;  // a conversation has its own
  NEREID_TRY_STATUS(encoder.encode(text, encode, ids));
  if (json) {
    line["tokens"] = ids.size();
    if (!options.count) line["ids"] = ids;
    return write_stdout(json_line(line));
  }
  if (!options.count) return write_stdout(fmt::format("{}\n", fmt::join(ids, " ")));
  return write_stdout(options.files.size() > 1 ? fmt::format("{} {}\n", ids.size(), file)
                                               : fmt::format("{}\n", ids.size()));
}

// The texts of a file: itself, or what is between its NULs.
Status each_text(const std::string& file, bool nul, const std::function<Status(std::string_view)>& f) {
  NEREID_TRY(const std::string text, read_input(file));
  std::string_view left = text;
  while (nul && left.find('\0') != std::string_view::npos) {
    const size_t end = left.find('\0');
    NEREID_TRY_STATUS(f(left.substr(0, end)));
    left.remove_prefix(end + 1);
  }
  return nul && left.empty() ? ok_status() : f(left);
}

Result<Answer> train(const TokenizeOptions& options, bool json) {
  if (options.output.empty()) return input_error("--train needs -o FILE");
  NEREID_TRY_STATUS(can_be_written("-o", options.output));
  for (const auto& file : options.files) NEREID_TRY_STATUS(is_not("-o", options.output, file));
  lm::TrainerOptions how = options.trainer;
  how.family = options.like == "qwen"     ? lm::TokenizerFamily::kQwen
               : options.like == "llama3" ? lm::TokenizerFamily::kLlama3
                                          : lm::TokenizerFamily::kCode;
  if (how.phrases > 0) {
    if (options.like != "code") return input_error("--phrases needs --like code");
    NEREID_TRY(const std::string words, read_input(options.phrase_words));
    std::istringstream each(words);
    how.phrase_words = {std::istream_iterator<std::string>(each), {}};
  }
  if (!options.whole_phrases.empty()) {
    if (options.like != "code") return input_error("--whole-phrases needs --like code");
    NEREID_TRY_STATUS(each_text(options.whole_phrases, true, [&](std::string_view phrase) -> Status {
      if (phrase.empty() || !lm::is_utf8(phrase))
        return input_error("--whole-phrases {}: phrase {}: expected UTF-8 that is not empty",
                           options.whole_phrases, how.whole_phrases.size() + 1);
      how.whole_phrases.emplace_back(phrase);
      return ok_status();
    }));
  }
  lm::Trainer trainer(how);
  for (const std::string& file : options.files)
    NEREID_TRY_STATUS(each_text(file, options.nul, [&](std::string_view text) -> Status {
      trainer.add(text);
      return ok_status();
    }));
  NEREID_TRY(const std::string text, trainer.train());
  NEREID_TRY(const auto tokenizer, lm::Tokenizer::parse(text, options.output));
  NEREID_TRY_STATUS(write_file_atomically(options.output, text));
  const Json line = {
      {"file", options.output}, {"tokens", tokenizer->size()}, {"distinct_words", trainer.distinct_words()}};
  NEREID_TRY_STATUS(write_stdout(json ? json_line(line)
                                      : fmt::format("{}: {} tokens, from {} distinct words\n", options.output,
                                                    tokenizer->size(), trainer.distinct_words())));
  return Answer::kYes;
}

Result<Answer> run(TokenizeOptions options, bool json) {
  // A large text takes minutes. What is written is written whole, at the end.
  end_soon_after_interrupt(0, "interrupted");
  if (options.files.empty()) options.files.push_back("-");
  if (options.train) return train(options, json);
  if (options.tokenizer.empty()) return input_error("which vocabulary? -t tokenizer.json");
  NEREID_TRY(const auto tokenizer, lm::Tokenizer::load(options.tokenizer));
  lm::Encoder encoder(tokenizer);
  if (options.chat) {
    NEREID_TRY(options.chat_template,
               lm::read_chat_template(std::filesystem::path(options.tokenizer).parent_path(), *tokenizer));
  }
  for (const std::string& file : options.files)
    NEREID_TRY_STATUS(each_text(file, options.nul, [&](std::string_view text) {
      return answer_one(*tokenizer, encoder, options, json, file, text);
    }));
  return Answer::kYes;
}

}  // namespace

void add_tokenize_command(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("tokenize", "Encode and decode text with a tokenizer");
  command->footer(kTokenizeExamples);
  auto options = std::make_shared<TokenizeOptions>();
  command->add_option("FILE", options->files, "Text files; - for standard input (default)");
  command->add_option("-t,--tokenizer", options->tokenizer, "The model's tokenizer.json");
  auto* decode = command->add_flag("--decode", options->decode, "Decode: read ids, write text");
  command->add_flag("--count", options->count, "Print the number of tokens only")->excludes(decode);
  command->add_flag("--skip-special", options->skip_special, "Decode without special tokens")->needs(decode);
  command->add_flag("!--no-special", options->encode.add_special,
                    "Add no special tokens around a text, as <|begin_of_text|>");
  command->add_flag("--leave-special", options->encode.leave_special,
                    "Special tokens in the text are not recognized: for untrusted text");
  command->add_flag("-0,--null", options->nul, "Files hold several texts, each ended by a NUL byte");
  auto* chat =
      command->add_flag("--chat", options->chat, "Texts are conversations in JSON; encode their prompts");
  chat->excludes(decode);
  command
      ->add_flag("!--no-thinking", options->chat_options.thinking,
                 "Start the assistant's message with an empty <think> block")
      ->needs(chat);
  command
      ->add_flag("!--no-prompt", options->chat_options.add_generation_prompt,
                 "Omit the header of the assistant's next message")
      ->needs(chat);
  auto* training = command->add_flag("--train", options->train, "Train a new vocabulary on the texts")
                       ->excludes(decode)
                       ->excludes(chat);
  command->add_option("-o,--output", options->output, "File for the trained tokenizer.json")->needs(training);
  command
      ->add_option("--vocab", options->trainer.vocabulary, "Vocabulary size, with bytes and special tokens")
      ->needs(training)
      ->capture_default_str();
  command->add_option("--special", options->trainer.special, "Special token; repeatable")
      ->needs(training)
      ->allow_extra_args(false);
  command->add_option("--min-frequency", options->trainer.min_frequency, "Minimum frequency of a merged pair")
      ->needs(training);
  auto* phrase_words =
      command->add_option("--phrase-words", options->phrase_words,
                          "File of names that may be part of phrases, separated by white space");
  command
      ->add_option("--phrases", options->trainer.phrases,
                   "Number of tokens of several words, as \" = tl.load(\", with names of --phrase-words")
      ->needs(training)
      ->needs(phrase_words);
  command
      ->add_option("--whole-phrases", options->whole_phrases,
                   "File of texts that are tokens as they are, each ended by a NUL byte")
      ->needs(training);
  command
      ->add_option("--like", options->like,
                   "Pre-tokenization: that of qwen or llama3, or code (names with underscores are words)")
      ->check(CLI::IsMember({"qwen", "llama3", "code"}))
      ->needs(training)
      ->capture_default_str();
  add_json_flag(*command, chosen,
                "Print one JSON object per text: file, tokens (their number), ids; or file, text");
  command->callback(
      [options, &chosen] { chosen.run = [options, &chosen] { return run(*options, chosen.json); }; });
}

}  // namespace nereid::cli
