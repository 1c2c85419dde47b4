#include "nereid/proposers/model.h"

#include <algorithm>
#include <atomic>
#include <fstream>

#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/base/text.h"
#include "nereid/compiler/output/trace_summary.h"
#include "nereid/proposers/conversation.h"

namespace nereid::proposers {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kHashedWhole = uintmax_t{256} << 20, kPiece = uintmax_t{1} << 20;
constexpr int kPieces = 64;
constexpr size_t kMaxThought = 4000;
constexpr const char* kTaskName = "model.py";              // as in training, whatever the file is called
constexpr double kTemperatureStep = 0.5, kHotTopP = 0.98;  // a round's temperature more, and its top_p

Result<std::string> file_hash(const fs::path& path) {
  std::error_code failure;
  const uintmax_t size = fs::file_size(path, failure);
  if (failure) return input_error("{}: {}", path.string(), failure.message());
  if (size <= kHashedWhole) {
    NEREID_TRY(const std::string bytes, read_file(path));
    return sha256_hex(bytes);
  }
  std::ifstream file(path, std::ios::binary);
  std::string all = std::to_string(size), piece(kPiece, '\0');
  for (int i = 0; i < kPieces; ++i) {
    file.seekg(static_cast<std::streamoff>((size - kPiece) / (kPieces - 1) * static_cast<uintmax_t>(i)));
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    if (!file) return input_error("{}: cannot be read", path.string());
    all += sha256_hex(piece);
  }
  return sha256_hex(all);
}

uint64_t seed_of(const std::string& source) {
  return std::stoull(sha256_hex(source).substr(0, 16), nullptr, 16) >>
         1;  // JSON has no larger numbers for all
}

// What a model process writes, as answers.
class WrittenAnswers : public Answers {
 public:
  explicit WrittenAnswers(Result<std::unique_ptr<ModelProcess::Answers>> written, bool newest = false,
                          const std::atomic<bool>* cancelled = nullptr)
      : written_(std::move(written)), newest_(newest), cancelled_(cancelled) {}

  Result<std::optional<One>> next(Deadline deadline) override {
    if (!written_.ok()) return written_.error();
    NEREID_TRY(auto written, (*written_)->next(deadline, newest_, cancelled_));
    if (!written) return std::optional<One>();
    One one{.sample = written->sample,
            .branch = std::move(written->branch),
            .from = written->from,
            .to = written->seconds};
    if (!written->refused.empty()) {
      one.answer.declined = std::move(written->refused);
      return std::optional(std::move(one));
    }
    one.answer.cost = {
        .seconds = std::max(0.0, written->seconds - seconds_),  // side by side: what came since the last
        .prompt_tokens = seconds_ == 0 ? written->prompt_tokens : 0,
        .completion_tokens = written->tokens};
    seconds_ = std::max(seconds_, written->seconds);
    std::string plan = thought_in(written->text);
    one.answer.proposals.push_back(
        {.text = std::move(written->text), .answer = true, .plan = std::move(plan)});
    return std::optional(std::move(one));
  }

 private:
  Result<std::unique_ptr<ModelProcess::Answers>> written_;
  const bool newest_;
  const std::atomic<bool>* const cancelled_;
  double seconds_ = 0;
};

}  // namespace

std::string thought_in(const std::string& answer) {
  const size_t open = answer.find("<think>"), close = answer.find("</think>");
  if (close == answer.npos) return "";
  const size_t from = open < close ? open + 7 : 0;
  return std::string(trimmed(std::string_view(answer).substr(from, close - from).substr(0, kMaxThought)));
}

Result<std::string> checkpoint_hash(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".safetensors") || name == "config.json" || name == "generation_config.json" ||
        name == "tokenizer.json" || name == "model.safetensors.index.json")
      files.push_back(entry.path());
  }
  if (failure) return input_error("{}: {}", folder.string(), failure.message());
  std::sort(files.begin(), files.end());
  std::string all;
  for (const auto& file : files) {
    NEREID_TRY(const std::string hash, file_hash(file));
    all += file.filename().string() + " " + hash + "\n";
  }
  return sha256_hex(all);
}

Result<std::unique_ptr<ModelProposer>> ModelProposer::start(const Installation& installation,
                                                            ModelOptions options) {
  for (const char* name : {"config.json", "tokenizer.json"})
    if (std::error_code ignored; !fs::exists(options.folder / name, ignored))
      return input_error("the proposer model: {} is not there: expected a checkpoint's folder",
                         (options.folder / name).string());
  std::unique_ptr<ModelProposer> proposer(new ModelProposer);
  const fs::path usual = installation.package / "prompts", asked_with = lm::prompts_of(options.folder, usual);
  NEREID_TRY(proposer->prompts_, lm::Prompts::load(asked_with));
  proposer->repairs_ = asked_with != usual && !trimmed(proposer->prompts_.repair).empty();
  NEREID_TRY(const std::string hash, checkpoint_hash(options.folder));
  proposer->identity_ = fmt::format("model {} {} on {}", hash, proposer->prompts_.hash, options.device);
  std::vector<std::string> words = {(installation.bin / "nereid-lm").string(),
                                    "propose",
                                    "--model",
                                    options.folder.string(),
                                    "--device",
                                    options.device};
  if (options.device == "cuda") proposer->branches_ = lm::BranchStart::kAtOnce;
  if (options.turn) words.emplace_back("--turns");
  NEREID_TRY(proposer->process_, ModelProcess::start(std::move(words), std::move(options.turn)));
  return proposer;
}

Result<Question> ModelProposer::question(const Request& request, std::vector<int> samples) const {
  Question question{.samples = std::move(samples), .seed = seed_of(request.source)};
  if (request.speculate && question.samples.size() > 1) question.branches = branches_;
  if (request.round > 0) {
    question.seed += static_cast<uint64_t>(request.round);
    question.temperature = 1 + kTemperatureStep * request.round, question.top_p = kHotTopP;
  }
  NEREID_TRY(question.messages, conversation(prompts_, kTaskName, request));
  if (!prompts_.prefill.empty() && request.trace != nullptr && request.attempts.empty()) {
    NEREID_TRY(question.prefills,
               prompts_.prefills_for(compiler::prefill_summary(*request.trace, request.source)));
    if (request.round > 0 && !question.prefills.empty())
      question.prefills.resize(1);  // what is greedy was had
  }
  return question;
}

std::string ModelProposer::at_work() const {
  const auto pace = process_->pace();
  return pace.a_second > 0 ? fmt::format("{} tokens, {:.0f} a second", pace.tokens, pace.a_second) : "";
}

std::unique_ptr<Answers> ModelProposer::propose_several(Request request, std::vector<int> samples) {
  auto asked = question(request, std::move(samples));
  if (!asked.ok()) return std::make_unique<WrittenAnswers>(asked.error());
  return std::make_unique<WrittenAnswers>(process_->ask(*asked), request.speculate, request.cancelled);
}

Result<Answer> ModelProposer::propose(const Request& request, Deadline deadline) {
  const auto answers = propose_several(request, {request.sample});
  NEREID_TRY(auto one, answers->next(deadline));
  if (!one) return our_error("the language model's process gave no answer");
  return std::move(one->answer);
}

Result<std::optional<Reply>> ModelProposer::converse(const std::vector<Message>& messages,
                                                     Deadline deadline) {
  const auto answers = process_->ask({.messages = messages, .samples = {0}});
  NEREID_TRY(auto written, answers->next(deadline));
  if (!written) return our_error("the language model's process gave no answer");
  if (!written->refused.empty()) return std::optional<Reply>();
  return std::optional(Reply{std::move(written->text),
                             {.seconds = written->seconds,
                              .prompt_tokens = written->prompt_tokens,
                              .completion_tokens = written->tokens}});
}

}  // namespace nereid::proposers
