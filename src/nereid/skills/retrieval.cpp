#include "nereid/skills/retrieval.h"

#include <algorithm>
#include <set>

#include "nereid/base/hash.h"
#include "nereid/skills/bm25.h"
#include "nereid/trace/notation.h"
#include "nereid/trace/op_class.h"

namespace nereid::skills {
namespace {

const trace::Phase* last_forward(const trace::Trace& trace) {
  const trace::Phase* last = nullptr;
  for (const auto& phase : trace.phases)
    if (phase.kind == trace::PhaseKind::kForward) last = &phase;
  return last;
}

// Calls of the last forward that do work, in order.
std::vector<const trace::Call*> work_in(const trace::Trace& trace) {
  std::vector<const trace::Call*> calls;
  const auto* forward = last_forward(trace);
  if (forward == nullptr) return calls;
  const trace::OpFacts facts(trace);
  for (const auto& step : forward->steps)
    if (const auto* call = std::get_if<trace::Call>(&step);
        call != nullptr && !trace::is_free(facts.classify_as_work(*call)))
      calls.push_back(call);
  return calls;
}

// "softmax" of "aten::_softmax.out".
std::string operator_name(std::string_view op) {
  if (const size_t scope = op.rfind("::"); scope != op.npos) op.remove_prefix(scope + 2);
  op = op.substr(0, op.find('.'));
  while (op.starts_with('_')) op.remove_prefix(1);
  while (op.ends_with('_')) op.remove_suffix(1);
  return std::string(op);
}

template <typename F>
void each_tensor(const trace::Call& call, const F& f) {
  for (const auto& arg : call.args)
    for (const auto id : trace::tensors_in(arg)) f(id);
  for (const auto& [name, arg] : call.kwargs)
    for (const auto id : trace::tensors_in(arg)) f(id);
}

std::vector<std::string> document_of(const Skill& skill) {
  std::string all = skill.name + "\n" + skill.when + "\n" + skill.text;
  for (const auto& list : {skill.operators, skill.tags})
    for (const auto& word : list) all += "\n" + word;
  return words_in(all);
}

}  // namespace

std::vector<std::string> operators_of(const trace::Trace& trace) {
  std::vector<std::string> names;
  for (const auto* call : work_in(trace))
    if (const std::string name = operator_name(call->op); std::ranges::find(names, name) == names.end())
      names.push_back(name);
  return names;
}

std::string query_of(const trace::Trace& trace) {
  std::set<std::string> others;
  const trace::OpFacts facts(trace);
  for (const auto* call : work_in(trace)) {
    others.emplace(to_string(facts.classify_as_work(*call)));
    each_tensor(*call, [&](trace::ValueId id) {
      others.emplace(to_string(trace.values.at(static_cast<size_t>(id)).dtype));
    });
  }
  std::string query;
  for (const auto& name : operators_of(trace)) query += (query.empty() ? "" : " ") + name;
  for (const auto& other : others) query += " " + other;
  return query;
}

std::string forward_signature(const trace::Trace& trace) {
  std::string all;
  for (const auto* call : work_in(trace)) {
    all += call->op;
    each_tensor(*call, [&](trace::ValueId id) {
      all += " " + trace::shape_text(trace.values.at(static_cast<size_t>(id)));
    });
    all += "\n";
  }
  return sha256_hex(all);
}

std::vector<Found> search(const std::vector<Rated>& skills, const std::string& query, size_t most) {
  std::vector<std::vector<std::string>> documents;
  for (const auto& skill : skills) documents.push_back(document_of(skill.entry.skill));
  const auto scores = Bm25(documents).scores(words_in(query));
  std::vector<Found> found;
  for (size_t i = 0; i < skills.size(); ++i)
    if (scores[i] > 0) found.push_back({i, scores[i], scores[i] * skills[i].worth.speedup});
  std::ranges::sort(found, [&](const Found& a, const Found& b) {
    if (a.score != b.score) return a.score > b.score;
    return skills[a.index].entry.skill.name < skills[b.index].entry.skill.name;
  });
  if (found.size() > most) found.resize(most);
  return found;
}

Result<std::vector<Rated>> rated(Library& library) {
  NEREID_TRY(auto entries, library.admitted());
  std::vector<Rated> all;
  for (auto& entry : entries) {
    NEREID_TRY(const auto samples, library.samples(entry.skill.name, entry.version));
    all.push_back({std::move(entry), worth_of(samples)});
  }
  return all;
}

}  // namespace nereid::skills
