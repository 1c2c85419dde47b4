#include "nereid/synth/sample/space.h"

#include <algorithm>
#include <numeric>

#include "nereid/base/check.h"

namespace nereid::synth {
namespace {

using ops::Form;
using ops::Term;

size_t feed_number(Feed feed) { return static_cast<size_t>((feed.a + 1) * 4 + feed.b + 1); }

// The class of an operand's size, from those of the result and the inner sizes.
int class_of(Term term, const Classes& out, const std::array<int, ops::kMaxInner>& inner) {
  switch (term.kind) {
    case Term::kOut:
    case Term::kHalfUp:
    case Term::kHalfDown:
      return out[term.index];
    case Term::kInner:
      return inner[term.index];
    case Term::kOne:
      return 0;
    case Term::kTwice:
      return out[term.index] + 1;
    case Term::kProduct:
      return out[term.index] + out[term.index + 1U];
  }
  return kClasses;
}

int number_of(const ClassVectors& vectors, const ops::Slot& slot, const Classes& out,
              const std::array<int, ops::kMaxInner>& inner) {
  int classes[ops::kMaxRank] = {};
  for (size_t d = 0; d < slot.rank; ++d) classes[d] = class_of(slot.dims[d], out, inner);
  return vectors.find(slot.rank, {classes, slot.rank});
}

bool within_bounds(const Form& form, const Bounds& bounds, const Classes& out,
                   const std::array<int, ops::kMaxInner>& inner) {
  int work = form.window_classes, parameter = form.window_classes;
  for (size_t d = 0; d < form.out_rank; ++d) work += out[d];
  for (size_t i = 0; i < form.inner; ++i) work += inner[i];
  if (form.work_is_product && work > bounds.work) return false;
  for (size_t d = 0; d < form.parameter.rank; ++d) parameter += class_of(form.parameter.dims[d], out, inner);
  return form.parameter.rank == 0 || parameter <= bounds.elements;
}

}  // namespace

ClassVectors::ClassVectors(int budget) {
  for (size_t rank = 0; rank <= ops::kMaxRank; ++rank) {
    size_t size = 1;
    for (size_t d = 0; d < rank; ++d) size *= kClasses;
    numbers_[rank].assign(size, -1);
    for (size_t code = 0; code < size; ++code) {
      Classes classes{};
      size_t rest = code;
      for (size_t d = rank; d-- > 0; rest /= kClasses) classes[d] = static_cast<uint8_t>(rest % kClasses);
      if (std::accumulate(classes.begin(), classes.end(), 0) > budget) continue;
      numbers_[rank][code] = static_cast<int>(vectors_[rank].size());
      vectors_[rank].push_back(classes);
    }
  }
}

int ClassVectors::find(int rank, std::span<const int> classes) const {
  size_t code = 0;
  for (const int c : classes) {
    if (c >= kClasses) return -1;
    code = code * kClasses + static_cast<size_t>(c);
  }
  return numbers_[static_cast<size_t>(rank)][code];
}

uint64_t ClassVectors::shapes(int rank, int index) const {
  uint64_t count = 1;
  for (int d = 0; d < rank; ++d) count *= grid(at(rank, index)[static_cast<size_t>(d)]).size();
  return count;
}

Space::Space(std::vector<const ops::Operator*> operators, Bounds bounds)
    : bounds_(bounds), vectors_(bounds.elements), operators_(std::move(operators)) {
  NEREID_CHECK(!operators_.empty(), "at least one operator");
  for (const ops::Operator* op : operators_) {
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& candidate) {
      return candidate.rule == op->rule && candidate.domain == op->domain &&
             candidate.commutes == op->commutes;
    });
    if (group == groups_.end()) {
      Group& made = groups_.emplace_back();
      made.rule = op->rule, made.domain = op->domain, made.commutes = op->commutes;
      made.members = {op};
    } else {
      group->members.push_back(op);
    }
  }
  for (Group& group : groups_) add_ways(group);
}

int Space::id_of(const Form& form) const {
  const auto found = std::ranges::find(forms_, &form);
  NEREID_CHECK(found != forms_.end(), "a form of the space");
  return static_cast<int>(found - forms_.begin());
}

const Edges& Space::edges(int form, Feed feed) const {
  return edges_[static_cast<size_t>(form)][feed_number(feed)];
}

void Space::add_ways(Group& group) {
  for (const Form& form : ops::forms(group.rule)) {
    auto known = std::find(forms_.begin(), forms_.end(), &form);
    if (known == forms_.end()) {
      forms_.push_back(&form), edges_.emplace_back();
      known = forms_.end() - 1;
    }
    const auto id = static_cast<uint16_t>(known - forms_.begin());
    const auto offer = [&](Feed feed, uint8_t tap, ops::Domain domain, std::vector<Transition>& ways) {
      Edges& edges = edges_[id][feed_number(feed)];
      if (edges.first.empty()) edges = make_edges(form, feed);
      if (edges.edges.empty() && !edges.identity) return;  // no size fits
      ways.push_back({id, feed, tap, static_cast<uint8_t>(kind_of(form.out_rank, domain)), form.preserving});
    };
    const bool alike = form.slots >= 2 && form.slot[0] == form.slot[1];
    const auto computed = [&](int slot) { return slot < form.slots && ((form.computed >> slot) & 1) != 0; };

    offer({}, 0, ops::domain_of_leaves(group.domain), group.starts);
    for (int8_t a = 0; a < form.slots; ++a) {
      if (!computed(a) || (a == 1 && group.commutes && alike)) continue;
      for (int d = 0; d < ops::kDomains; ++d) {
        const auto domain = static_cast<ops::Domain>(d);
        auto& onwards = group.onwards[static_cast<size_t>(kind_of(form.slot[a].rank, domain))];
        ops::Domain result{};
        if (domain_of(group.domain, {.first = domain, .slot = static_cast<uint8_t>(a)}, result))
          offer({a, -1}, 0, result, onwards);
        if (a == 0 && form.preserving && alike && computed(1) &&
            domain_of(group.domain, {.first = domain, .second = ops::Domain::kWide, .two = true}, result))
          for (uint8_t tap = 1; tap <= kLongestTap; ++tap) offer({0, -1}, tap, result, onwards);
        for (int8_t b = 0; b < form.slots; ++b) {
          if (b == a || !computed(b) || (a > b && group.commutes && alike)) continue;
          for (int e = 0; e < ops::kDomains; ++e) {
            const auto other = static_cast<ops::Domain>(e);
            const ops::Operands operands{
                .first = a < b ? domain : other, .second = a < b ? other : domain, .two = true};
            if (domain_of(group.domain, operands, result))
              offer({a, b}, 0, result,
                    group.joins[static_cast<size_t>(kind_of(form.slot[a].rank, domain))]
                               [static_cast<size_t>(kind_of(form.slot[b].rank, other))]);
          }
        }
      }
    }
  }
}

Edges Space::make_edges(const Form& form, Feed feed) const {
  Edges made;
  const int rank = form.out_rank;
  made.identity = feed.a == 0 && feed.b < 0 && form.preserving && form.inner == 0;
  for (int out = 0; out < vectors_.count(rank); ++out) {
    made.first.push_back(static_cast<uint32_t>(made.edges.size()));
    const Classes& classes = vectors_.at(rank, out);
    bool allowed = true;
    for (size_t d = 0; d < form.out_rank; ++d)
      allowed &= classes[d] >= form.low[d] && classes[d] <= form.high[d];
    std::array<int, ops::kMaxInner> inner{};
    std::fill_n(inner.begin(), form.inner, form.inner_low);
    while (allowed) {
      int numbers[ops::kMaxSlots] = {};
      bool fits = within_bounds(form, bounds_, classes, inner);
      for (int s = 0; s < form.slots && fits; ++s)
        fits = (numbers[s] = number_of(vectors_, form.slot[s], classes, inner)) >= 0;
      if (fits) {
        Edge edge;
        if (feed.a >= 0) edge.spine = static_cast<uint16_t>(numbers[feed.a]);
        if (feed.b >= 0) edge.branch = static_cast<uint16_t>(numbers[feed.b]);
        for (size_t i = 0; i < form.inner; ++i) {
          edge.inner |= static_cast<uint16_t>(inner[i] << (3 * i));
          edge.ways *= static_cast<uint32_t>(grid(inner[i]).size());
        }
        made.edges.push_back(edge);
      }
      made.identity &= fits;
      size_t i = 0;  // the next combination of inner classes
      while (i < form.inner && ++inner[i] == kClasses) inner[i++] = form.inner_low;
      if (i == form.inner) break;
    }
    made.identity &= allowed;
  }
  made.first.push_back(static_cast<uint32_t>(made.edges.size()));
  return made;
}

}  // namespace nereid::synth
