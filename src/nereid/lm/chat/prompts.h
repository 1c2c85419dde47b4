// A model's prompts as files: a folder's templates, whose {{name}} are replaced by what is known of
// the task.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/lm/chat/chat.h"

namespace nereid::lm {

// What stands in place of each {{key}}. A key of the template that has no value is an error (blamed on the
// input) with the line; values are not looked into again.
Result<std::string> fill(const std::string& text, const std::map<std::string, std::string>& values,
                         const std::string& what);

// A wrong answer, and what was said of it.
struct WrongAnswer {
  std::string text, evidence;
};

struct Prompts {
  std::string system;  // empty: nothing is said before the question
  std::string task, repair;
  // How an answer to a task begins, for a model that goes on from there; empty: it begins by itself.
  std::string prefill;
  // How its samples 1, 2, ... do, which are greedy then: other choices, each as likely right as the first.
  std::vector<std::string> otherwise;
  std::string hash;  // of all of them: a part of who answers

  // system.md, task.md and repair.md of a folder, and prefill.md, prefill-1.md, prefill-2.md, ... where they
  // are there, without line ends behind. In these {{steps}} is the traced forward, {{calls}} the same without
  // sizes of what is given and options that decide sizes, as models before small-v12 learnt it.
  static Result<Prompts> load(const std::filesystem::path& folder);

  // `prefill` and `otherwise` for a task whose traced forward is this in words
  // (compiler/output/trace_summary.h, prefill_summary); `prefill` alone; empty where the model has none, or
  // `steps` is empty.
  Result<std::vector<std::string>> prefills_for(const std::string& steps) const;
  Result<std::string> prefill_for(const std::string& steps) const;

  // The question for a kernel for the file of this name and source.
  Result<std::vector<ChatMessage>> ask(const std::string& name, const std::string& source) const;
  // The same question after wrong answers, each with what repair.md says of it.
  Result<std::vector<ChatMessage>> repair_messages(const std::string& name, const std::string& source,
                                                   const std::vector<WrongAnswer>& wrong) const;
};

// Where a model's prompts are: its own folder `prompts`, or else `usual`.
std::filesystem::path prompts_of(const std::filesystem::path& model, const std::filesystem::path& usual);

}  // namespace nereid::lm
