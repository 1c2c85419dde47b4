#include "nereid/skills/skilled_proposer.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "nereid/base/hash.h"
#include "nereid/base/text.h"
#include "nereid/lm/chat/prompts.h"

namespace nereid::skills {
namespace {

constexpr int64_t kSamplesOfARound = 100000;

int64_t number_of(const proposers::Request& request, int sample) {
  return request.round * kSamplesOfARound + sample;
}

std::optional<int64_t> integer_in(std::string_view text) {
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string shown(const Skill& skill) {
  return fmt::format("## {}\n\nWhen: {}\n\n{}\n\n```python\n{}```", skill.name, skill.when, skill.text,
                     skill.pattern);
}

}  // namespace

std::string variant_of(const Use& use) {
  std::string text = fmt::format("sample {} ", use.sample);
  if (use.control) return text + "without skills";
  if (use.skills.empty()) return text + "chose no skill";
  for (size_t i = 0; i < use.skills.size(); ++i)
    text += fmt::format("{}{}@{}", i == 0 ? "with " : ", ", use.skills[i].first, use.skills[i].second);
  return text;
}

std::optional<Use> use_in(const std::string& variant) {
  if (!variant.starts_with("sample ")) return std::nullopt;
  const size_t space = variant.find(' ', 7);
  if (space == variant.npos) return std::nullopt;
  const auto number = integer_in(std::string_view(variant).substr(7, space - 7));
  if (!number) return std::nullopt;
  Use use{.sample = *number};
  std::string_view rest = std::string_view(variant).substr(space + 1);
  use.control = rest == "without skills";
  if (use.control || rest == "chose no skill") return use;
  if (!rest.starts_with("with ")) return std::nullopt;
  rest.remove_prefix(5);
  while (true) {
    const size_t comma = std::min(rest.find(", "), rest.size());
    const std::string_view one = rest.substr(0, comma);
    const size_t at = std::min(one.find('@'), one.size());
    const auto version = integer_in(one.substr(std::min(at + 1, one.size())));
    if (!is_skill_name(one.substr(0, at)) || !version) return std::nullopt;
    use.skills.emplace_back(one.substr(0, at), *version);
    if (comma == rest.size()) return use;
    rest.remove_prefix(comma + 2);
  }
}

std::vector<size_t> chosen_in(const std::string& reply, const std::vector<std::string>& offered) {
  std::vector<size_t> chosen;
  std::string_view rest = reply;
  if (const size_t thought = rest.rfind("</think>"); thought != rest.npos) rest.remove_prefix(thought + 8);
  while (!rest.empty() && chosen.size() < kMaxChosen) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    // "1. `name`: why", "* name"
    if (const size_t mark = line.find_first_not_of("0123456789");
        mark != line.npos && mark > 0 && (line[mark] == '.' || line[mark] == ')'))
      line.remove_prefix(mark + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t*-`\"'"), line.size()));
    const auto stops = [](char c) { return !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'); };
    const auto name = line.substr(0, static_cast<size_t>(std::ranges::find_if(line, stops) - line.begin()));
    const auto found = std::ranges::find(offered, name);
    const size_t index = static_cast<size_t>(found - offered.begin());
    if (found != offered.end() && std::ranges::find(chosen, index) == chosen.end()) chosen.push_back(index);
  }
  return chosen;
}

SkilledProposer::SkilledProposer(proposers::Proposer& model, std::vector<Rated> skills, Prompts prompts,
                                 SkilledOptions options)
    : model_(model), skills_(std::move(skills)), prompts_(std::move(prompts)), options_(options) {
  std::string all;
  for (const auto& [entry, worth] : skills_)
    all += fmt::format("{}@{} {}\n", entry.skill.name, entry.version, entry.skill.hash());
  identity_ = fmt::format("{} with skills {} {} {} {}", model_.identity(), sha256_hex(all), prompts_.hash,
                          options_.without, options_.all ? "all" : "chosen");
}

// Each task has its own places among its samples: where there is one sample each, some tasks have skills.
bool SkilledProposer::is_control(const proposers::Request& request, int sample) const {
  if (options_.without <= 0) return false;
  const int64_t offset = std::stoll(sha256_hex(request.source).substr(0, 8), nullptr, 16);
  const auto before = [&](int64_t n) {
    return static_cast<int64_t>(std::floor(static_cast<double>(n) * options_.without));
  };
  const int64_t n = offset % 1000 + sample;
  return before(n + 1) > before(n);
}

Result<std::vector<size_t>> SkilledProposer::choose(const proposers::Request& request, Deadline deadline,
                                                    proposers::Cost& cost) {
  if (request.trace == nullptr) return std::vector<size_t>();
  const auto found = search(skills_, query_of(*request.trace));
  if (found.empty()) return std::vector<size_t>();
  if (prompts_.choose.empty()) return std::vector<size_t>{found.front().index};
  std::vector<std::string> names;
  std::string list;
  for (const auto& [index, bm25, score] : found) {
    const Skill& skill = skills_[index].entry.skill;
    names.push_back(skill.name);
    list += fmt::format("{}* {}: {}", list.empty() ? "" : "\n", skill.name, skill.when);
  }
  NEREID_TRY(auto question, lm::fill(prompts_.choose,
                                     {{"name", request.name},
                                      {"source", request.source},
                                      {"skills", list},
                                      {"most", std::to_string(kMaxChosen)}},
                                     "choose-skills.md"));
  NEREID_TRY(const auto reply, model_.converse({{"user", std::move(question)}}, deadline));
  if (!reply) return std::vector<size_t>{found.front().index};
  cost += reply->cost;
  std::vector<size_t> chosen;
  for (const size_t place : chosen_in(reply->text, names)) chosen.push_back(found[place].index);
  return chosen;
}

Result<SkilledProposer::Guidance> SkilledProposer::guidance_for(const proposers::Request& request,
                                                                Deadline deadline) {
  Guidance guidance;
  std::vector<size_t> given;
  if (options_.all) {
    for (size_t i = 0; i < skills_.size(); ++i) given.push_back(i);
  } else {
    const std::string key = request.name + "\n" + request.source;
    std::unique_lock lock(mutex_);
    const auto known = chosen_.find(key);
    if (known != chosen_.end()) {
      given = known->second;
    } else {
      lock.unlock();
      NEREID_TRY(given, choose(request, deadline, guidance.cost));
      lock.lock();
      given = chosen_.emplace(key, given).first->second;
    }
  }
  std::string texts;
  for (const size_t index : given) {
    const Entry& entry = skills_[index].entry;
    texts += (texts.empty() ? "" : "\n\n") + shown(entry.skill);
    guidance.skills.emplace_back(entry.skill.name, entry.version);
  }
  if (given.empty()) return guidance;
  NEREID_TRY(guidance.text, lm::fill(prompts_.guide, {{"skills", texts}}, "skills.md"));
  return guidance;
}

void SkilledProposer::mark(proposers::Answer& answer, const proposers::Request& request, int sample,
                           const Guidance& guidance) const {
  const Use use{.sample = number_of(request, sample),
                .skills = guidance.skills,
                .control = is_control(request, sample)};
  for (auto& proposal : answer.proposals) proposal.variant = variant_of(use);
}

Result<proposers::Answer> SkilledProposer::propose(const proposers::Request& request, Deadline deadline) {
  Guidance guidance;
  proposers::Request guided = request;
  if (!is_control(request, request.sample)) {
    NEREID_TRY(guidance, guidance_for(request, deadline));
    guided.guidance = guidance.text;
  }
  NEREID_TRY(auto answer, model_.propose(guided, deadline));
  answer.cost += guidance.cost;
  mark(answer, request, request.sample, guidance);
  return answer;
}

// Both arms are asked at the first `next`, whose deadline the choice has, too. An answer is taken from the
// arm whose next sample has the smaller number.
class SkilledProposer::SeveralAnswers : public proposers::Answers {
 public:
  SeveralAnswers(SkilledProposer& proposer, proposers::Request request, const std::vector<int>& samples)
      : proposer_(proposer), request_(std::move(request)) {
    for (const int sample : samples)
      (proposer.is_control(request_, sample) ? control_ : skilled_).samples.push_back(sample);
  }

  Result<std::optional<One>> next(Deadline deadline) override {
    if (!asked_) {
      if (!skilled_.samples.empty()) {
        NEREID_TRY(guidance_, proposer_.guidance_for(request_, deadline));
      }
      proposers::Request guided = request_;
      guided.guidance = guidance_.text;
      skilled_.answers = proposer_.model_.propose_several(std::move(guided), skilled_.samples);
      control_.answers = proposer_.model_.propose_several(request_, control_.samples);
      asked_ = true;
    }
    Arm* arm = first();
    while (arm != nullptr) {
      NEREID_TRY(auto one, arm->answers->next(deadline));
      ++arm->given;
      if (one) {
        const bool control = arm == &control_;
        if (!control) one->answer.cost += std::exchange(guidance_.cost, {});
        proposer_.mark(one->answer, request_, one->sample, control ? Guidance() : guidance_);
        return one;
      }
      arm->given = arm->samples.size();
      arm = first();
    }
    return std::optional<One>();
  }

 private:
  struct Arm {
    std::vector<int> samples{};
    size_t given = 0;
    std::unique_ptr<proposers::Answers> answers{};
    bool over() const { return given == samples.size(); }
  };
  Arm* first() {
    if (skilled_.over()) return control_.over() ? nullptr : &control_;
    if (control_.over()) return &skilled_;
    return skilled_.samples[skilled_.given] < control_.samples[control_.given] ? &skilled_ : &control_;
  }

  SkilledProposer& proposer_;
  const proposers::Request request_;
  Arm skilled_, control_;
  Guidance guidance_;
  bool asked_ = false;
};

std::unique_ptr<proposers::Answers> SkilledProposer::propose_several(proposers::Request request,
                                                                     std::vector<int> samples) {
  return std::make_unique<SeveralAnswers>(*this, std::move(request), samples);
}

}  // namespace nereid::skills
