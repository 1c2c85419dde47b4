// Writing a skill from two verified answers to one task, of which one is faster.
#pragma once

#include <string>
#include <vector>

#include "nereid/proposers/proposer.h"
#include "nereid/search/evaluator.h"
#include "nereid/skills/prompts.h"
#include "nereid/skills/skill.h"
#include "nereid/store/store.h"

namespace nereid::skills {

inline constexpr double kMinGain = 1.2;  // of a pair: time of the slower over time of the faster

// A verified answer, as it was handed in: a file, or a model's raw answer.
struct VerifiedAnswer {
  std::string text{};
  bool answer = false;  // raw
  search::Judged judged{};
};

struct AnswerPair {
  std::string task{};  // source
  VerifiedAnswer slower{}, faster{};
  double speedup = 1;
  bool modelled = false;  // by the cost model: where either was not timed
};

// The answers by their times; an Error (blamed on the input) where one is not verified, or the gain is less
// than kMinGain.
Result<AnswerPair> pair_of(const std::string& task, VerifiedAnswer a, VerifiedAnswer b);

// Pairs in a store of results: of each task, under one question, hardware and versions, the slowest and the
// fastest verified answer. The largest gain first, one pair a task, at most `most`.
Result<std::vector<AnswerPair>> pairs_in(store::Store& store, size_t most);

// Without a model: the differences in launches, bytes, operations, plan, constants and lines in words, and
// the faster answer's code as the pattern. `task`: the pair's task, traced.
Skill skill_from_difference(const AnswerPair& pair, const search::Task& task);

// In a model's words (learn-skill.md). It gets its text back with the error, twice at most, where that is no
// skill; after that an Error, blamed on the input. Operators are the trace's, whatever it says.
Result<Skill> skill_from_model(proposers::Proposer& model, const Prompts& prompts, const AnswerPair& pair,
                               const search::Task& task, Deadline deadline);

}  // namespace nereid::skills
