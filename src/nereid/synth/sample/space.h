// The program space of docs/synth.md, prepared for counting: operators grouped by what they do to shapes and
// domains, the ways of a step, and how the class vectors of a step's operands follow from its result's.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "nereid/ops/form.h"
#include "nereid/ops/operator.h"
#include "nereid/synth/sample/size_class.h"

namespace nereid::synth {

struct Bounds {
  int elements = 8;  // e: the classes of a tensor's sizes add up to at most this (8: 2^24 elements)
  int work = 10;     // w: likewise of a step's multiply-adds (10: 2^30)
};

using Classes = std::array<uint8_t, ops::kMaxRank>;

// The class vectors of shapes within the bound, numbered for each rank.
class ClassVectors {
 public:
  explicit ClassVectors(int budget);
  int count(int rank) const { return static_cast<int>(vectors_[static_cast<size_t>(rank)].size()); }
  const Classes& at(int rank, int index) const {
    return vectors_[static_cast<size_t>(rank)][static_cast<size_t>(index)];
  }
  // -1 where a class is too high or the vector over the budget.
  int find(int rank, std::span<const int> classes) const;
  // How many shapes of the grid have these classes.
  uint64_t shapes(int rank, int index) const;

 private:
  std::array<std::vector<Classes>, ops::kMaxRank + 1> vectors_;
  std::array<std::vector<int>, ops::kMaxRank + 1> numbers_;
};

// What of a step's operands was computed: none (a start), slot `a` (the current value), or also slot `b` (a
// branch).
struct Feed {
  int8_t a = -1, b = -1;
  bool operator==(const Feed&) const = default;
};

struct Edge {
  uint16_t spine = 0, branch = 0;  // class vectors of slots a and b
  uint16_t inner = 0;              // classes of inner sizes, 3 bits each
  uint32_t ways = 1;               // how many inner sizes have these classes
};
// For each class vector of a result, the class vectors its operands may have.
struct Edges {
  bool identity = false;  // slot a has the result's shape, and every shape will do
  std::vector<uint32_t> first;
  std::vector<Edge> edges;
  std::span<const Edge> of(int out) const {
    const auto i = static_cast<size_t>(out);
    return {edges.data() + first[i], first[i + 1] - first[i]};
  }
};

// A value as the wiring sees it: rank and domain, 24 kinds.
inline constexpr int kKinds = (ops::kMaxRank + 1) * ops::kDomains;
inline int kind_of(int rank, ops::Domain domain) { return rank * ops::kDomains + static_cast<int>(domain); }
inline int rank_of(int kind) { return kind / ops::kDomains; }

// A way to apply an operator to computed operands of given kinds.
struct Transition {
  uint16_t form = 0;  // in Space::forms
  Feed feed;
  uint8_t tap = 0;     // slot 1 is the value so many steps behind; 0: it is not
  uint8_t kind = 0;    // of the result
  bool keeps = false;  // the form keeps the shape of slot 0
};
inline constexpr int kLongestTap = 2;
// Steps of a branch: a start and what goes on from it.
inline constexpr int kLongestBranch = 4;
// Steps behind a result that kept its shape.
inline int run_after(const Transition& transition, int run) {
  if (!transition.keeps) return 0;
  return transition.feed.a == 0 ? (run < kLongestTap ? run + 1 : kLongestTap) : 1;
}

// A value as a wiring's future sees it: its kind, and the steps behind it that kept its shape.
inline constexpr int kRuns = kLongestTap + 1;
inline constexpr int kTypes = kKinds * kRuns;
inline int type_of(int kind, int run) { return kind * kRuns + run; }
inline int type_after(const Transition& transition, int run) {
  return type_of(transition.kind, run_after(transition, run));
}

// Operators between which neither shapes nor domains make a difference.
struct Group {
  ops::Rule rule{};
  ops::DomainRule domain{};
  bool commutes = false;
  std::vector<const ops::Operator*> members;

  std::vector<Transition> starts;                       // of fresh inputs alone
  std::array<std::vector<Transition>, kKinds> onwards;  // by the kind of the current value: continue and tap
  std::array<std::array<std::vector<Transition>, kKinds>, kKinds>
      joins;  // by those of the current value and the branch
};

class Space {
 public:
  Space(std::vector<const ops::Operator*> operators, Bounds bounds);

  const Bounds& bounds() const { return bounds_; }
  const ClassVectors& vectors() const { return vectors_; }
  const std::vector<const ops::Operator*>& operators() const { return operators_; }
  const std::vector<Group>& groups() const { return groups_; }
  const ops::Form& form(int id) const { return *forms_[static_cast<size_t>(id)]; }
  int id_of(const ops::Form& form) const;  // a form of this space
  int form_count() const { return static_cast<int>(forms_.size()); }
  const Edges& edges(int form, Feed feed) const;

 private:
  void add_ways(Group& group);
  Edges make_edges(const ops::Form& form, Feed feed) const;

  Bounds bounds_;
  ClassVectors vectors_;
  std::vector<const ops::Operator*> operators_;
  std::vector<const ops::Form*> forms_;
  std::vector<Group> groups_;
  std::vector<std::array<Edges, 16>> edges_;  // [form][feed]
};

}  // namespace nereid::synth
