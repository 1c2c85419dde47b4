// The sampler against full enumeration of small spaces: everything that is drawn is a program of the space,
// and all are drawn as often as docs/synth.md says.
#include "nereid/synth/sample/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <thread>
#include <unordered_map>

#include "tests/support/chi_square.h"
#include "tests/support/enumerate.h"
#include "tests/support/times.h"

namespace nereid::synth {
namespace {

constexpr double kUnlikely = 4.5;

std::vector<const ops::Operator*> named(std::initializer_list<std::string_view> names) {
  std::vector<const ops::Operator*> operators;
  for (const std::string_view name : names) {
    operators.push_back(ops::find(name));
    EXPECT_NE(operators.back(), nullptr) << name;
  }
  return operators;
}

struct SmallSpace {
  std::string_view name;
  std::initializer_list<std::string_view> operators;
  Bounds bounds;
  int length;
  uint64_t draws;
};

std::ostream& operator<<(std::ostream& out, const SmallSpace& space) { return out << space.name; }

const SmallSpace kSmallSpaces[] = {
    {"reductions", {"sum", "argmax", "mean"}, {1, 10}, 2, 100'000},
    {"joins", {"matmul", "relu"}, {1, 1}, 3, 80'000},
    {"products_over_the_bound", {"matmul", "linear", "bmm"}, {3, 3}, 1, 100'000},
    {"halves", {"slice", "pad", "log_softmax"}, {1, 10}, 2, 100'000},
    {"doubles", {"cat", "tril"}, {2, 10}, 2, 100'000},
    {"windows", {"conv1d", "max_pool1d", "conv_transpose1d"}, {1, 10}, 2, 80'000},
    {"transposes", {"softsign", "transpose"}, {1, 10}, 2, 100'000},
    {"taps", {"softsign", "lerp"}, {0, 10}, 3, 100'000},
    {"branches", {"lerp", "softsign"}, {0, 10}, 4, 40'000},
    {"sequences_left_out", {"embedding", "instance_norm", "bmm"}, {1, 2}, 4, 20'000},
    {"domains", {"log", "exp", "cumprod"}, {1, 10}, 2, 80'000},
    {"splits", {"view", "stack", "mse_loss", "softmax"}, {1, 10}, 2, 100'000},
    {"cells", {"gru_cell", "embedding", "tanh"}, {3, 4}, 1, 150'000},
};

class SmallSpaces : public testing::TestWithParam<SmallSpace> {
 protected:
  struct Program {
    std::string key;
    bool two, is_drawn;
    size_t sequence, wiring;  // number among those with as many results
  };

  SmallSpaces() : operators_(named(GetParam().operators)), space_(operators_, GetParam().bounds) {
    const auto enumerator = [&] { return Enumerator(operators_, GetParam().bounds, GetParam().length); };
    all_ = enumerator().programs();
    sequences_[0] = enumerator().sequences(false), sequences_[1] = enumerator().sequences(true);
    std::unordered_map<std::string, size_t> numbers[2];  // [two results] of sequences and of wirings
    for (const EnumeratedProgram& program : all_) {
      const bool two = program.two();
      const auto number = [&](const std::string& text) {
        return numbers[two].try_emplace(text, numbers[two].size()).first->second;
      };
      const std::string sequence = program.sequence();
      programs_.push_back({.key = program.key(),
                           .two = two,
                           .is_drawn = sequences_[two].contains(sequence),
                           .sequence = number(sequence),
                           .wiring = number(program.wiring())});
    }
    std::ranges::sort(programs_, {}, &Program::key);
    for (const Program& program : programs_)
      EXPECT_TRUE(places_.try_emplace(program.key, places_.size()).second)
          << "enumerated twice: " << program.key;
    for (const bool two : {false, true}) numbers_[two] = numbers[two].size();
  }

  // The probability that the page gives each program; 0 where it is none that is drawn.
  std::vector<double> expected(Uniform uniform) const {
    std::vector<uint64_t> of_wiring[2], wirings[2];  // [two results]: assignments of sizes; of a sequence
    double programs[2] = {0, 0}, sequences[2] = {0, 0};
    for (const bool two : {false, true})
      of_wiring[two].resize(numbers_[two]), wirings[two].resize(numbers_[two]);
    const auto counts = [&](const Program& program) {
      return uniform == Uniform::kPrograms || program.is_drawn;
    };
    for (const Program& program : programs_) {
      if (!counts(program)) continue;
      const bool two = program.two;
      ++programs[two];
      if (of_wiring[two][program.wiring]++ == 0 && wirings[two][program.sequence]++ == 0) ++sequences[two];
    }
    double share[2] = {1, 1};  // of programs with one result, with two
    if (programs[0] > 0 && programs[1] > 0) share[0] = 7.0 / 8, share[1] = 1.0 / 8;
    std::vector<double> probabilities;
    for (const Program& program : programs_) {
      const bool two = program.two;
      const double alike = uniform == Uniform::kPrograms
                               ? programs[two]
                               : sequences[two] * static_cast<double>(wirings[two][program.sequence]) *
                                     static_cast<double>(of_wiring[two][program.wiring]);
      probabilities.push_back(counts(program) ? share[two] / alike : 0);
    }
    return probabilities;
  }

  static uint64_t draws() { return GetParam().draws * test_times(); }

  // How often each program was drawn; at the end what is none.
  std::vector<uint64_t> drawn(Uniform uniform, const Generation& generation = synth::generation) const {
    Sampler sampler(space_, GetParam().length, uniform, generation);
    SampledProgram sampled;
    std::vector<uint64_t> counts(programs_.size() + 1);
    for (uint64_t i = 0; i < draws(); ++i) {
      sampler.draw(7, i, sampled);
      const auto place = places_.find(as_enumerated(sampled, space_).key());
      ++counts[place == places_.end() ? programs_.size() : place->second];
    }
    return counts;
  }

  // How many draws are programs of probability 0, or none.
  static uint64_t outside(std::span<const double> probabilities, std::span<const uint64_t> counts) {
    uint64_t sum = counts.back();
    for (size_t i = 0; i < probabilities.size(); ++i)
      if (probabilities[i] == 0) sum += counts[i];
    return sum;
  }

  void are_drawn_uniformly_by_sequences() const {
    const auto cells = expected(Uniform::kSequences);
    const auto size = std::ranges::count_if(cells, [](double probability) { return probability > 0; });
    ASSERT_GT(size, 100);
    const auto counts = drawn(Uniform::kSequences);
    EXPECT_EQ(outside(cells, counts), 0u) << "not of the space";
    EXPECT_LT(std::abs(chi_square_deviate(cells, counts, draws())), kUnlikely) << size << " programs";
  }

  // ... and so drawn, they are not uniform by sequences: this test distinguishes the two.
  void are_drawn_uniformly_by_programs() const {
    const auto counts = drawn(Uniform::kPrograms);
    const auto cells = expected(Uniform::kPrograms), others = expected(Uniform::kSequences);
    EXPECT_EQ(outside(cells, counts), 0u) << "not of the space";
    EXPECT_LT(std::abs(chi_square_deviate(cells, counts, draws())), kUnlikely) << cells.size() << " programs";
    if (outside(others, counts) == 0) {
      EXPECT_GT(chi_square_deviate(others, counts, draws()), kUnlikely);
    }
  }

  // Also where the operators joined the catalogue one after the other.
  void are_drawn_uniformly_in_generations() const {
    const auto in_order = [&](const ops::Operator& op) {
      return static_cast<int>(std::ranges::find(operators_, &op) - operators_.begin());
    };
    for (const Uniform uniform : {Uniform::kSequences, Uniform::kPrograms}) {
      const auto cells = expected(uniform);
      const auto counts = drawn(uniform, in_order);
      EXPECT_EQ(outside(cells, counts), 0u) << "not of the space";
      EXPECT_LT(std::abs(chi_square_deviate(cells, counts, draws())), kUnlikely);
    }
  }

  void are_as_large_as_counted() const {
    EXPECT_EQ(Sampler(space_, GetParam().length, Uniform::kPrograms).choices(),
              static_cast<double>(all_.size()));
    EXPECT_EQ(Sampler(space_, GetParam().length, Uniform::kSequences).choices(),
              static_cast<double>(sequences_[0].size() + sequences_[1].size()));
  }

  // The page's branches of several steps, and its sequences that take one, are in some of these spaces.
  void have_what_they_are_for() const {
    const auto count = [&](auto what) { return std::count_if(all_.begin(), all_.end(), what); };
    const auto long_branch = count([](const EnumeratedProgram& program) {
      for (size_t i = 1; i < program.steps.size(); ++i)
        if (program.steps[i - 1].depth == 1 && program.steps[i].depth == 1) return true;
      return false;
    });
    const auto open = count([](const EnumeratedProgram& program) { return program.steps.back().depth > 0; });
    const auto nested = count([](const EnumeratedProgram& program) {
      return std::any_of(program.steps.begin(), program.steps.end(),
                         [](const EnumeratedStep& step) { return step.depth == 2; });
    });
    const int length = GetParam().length;
    EXPECT_EQ(long_branch > 0, length > 2) << long_branch;
    EXPECT_EQ(open > 0, length > 1) << open;
    EXPECT_EQ(nested > 0, length > 3) << nested;
    EXPECT_EQ(std::ranges::all_of(programs_, &Program::is_drawn), GetParam().name != "sequences_left_out")
        << all_.size();
  }

  const std::vector<const ops::Operator*> operators_;
  const Space space_;
  std::vector<EnumeratedProgram> all_;
  std::vector<Program> programs_;  // all of them, by their keys
  std::unordered_map<std::string_view, size_t> places_;
  std::set<std::string> sequences_[2];  // with one result, with two
  size_t numbers_[2] = {};              // of sequences and wirings, with one result, with two
};

// One test, since the enumeration takes longer than most of what is compared with it.
TEST_P(SmallSpaces, AreDrawnUniformly) {
  have_what_they_are_for();
  are_as_large_as_counted();
  are_drawn_uniformly_by_sequences();
  are_drawn_uniformly_by_programs();
  if (GetParam().draws <= 20'000) are_drawn_uniformly_in_generations();
}

INSTANTIATE_TEST_SUITE_P(All, SmallSpaces, testing::ValuesIn(kSmallSpaces),
                         [](const auto& info) { return std::string(info.param.name); });

// A sequence for which no sizes fit is never drawn, and does not hang the sampler: a matrix is halved and
// halved.
TEST(Sampler, DrawsNoSequenceWithoutSizes) {
  const Space space(named({"cat", "relu"}),
                    {.elements = 1, .work = 10});  // cat's axis is of class 2 at least
  Sampler sampler(space, 3, Uniform::kSequences);
  SampledProgram sampled;
  for (uint64_t i = 0; i < 200; ++i) {
    sampler.draw(1, i, sampled);
    for (const SampledStep& step : sampled.steps) EXPECT_EQ(step.op->name, "relu");
  }
  EXPECT_TRUE(Sampler(Space(named({"cat"}), {.elements = 1, .work = 10}), 1, Uniform::kSequences).empty());
  EXPECT_FALSE(sampler.empty());
}

TEST(Sampler, DecidesWithDoublesAsWithNaturals) {
  const Space space(ops::every_operator(), {});
  for (const Uniform uniform : {Uniform::kSequences, Uniform::kPrograms})
    for (const int length : {1, 4}) {
      Sampler sampler(space, length, uniform);
      SampledProgram sampled, exact;
      for (uint64_t i = 0; i < 40; ++i) {
        sampler.draw(3, i, sampled);
        sampler.draw_with_naturals(3, i, exact);
        ASSERT_EQ(as_enumerated(sampled, space).key(), as_enumerated(exact, space).key());
      }
    }
}

TEST(Sampler, DrawsTheSameInAnyOrderOnAnyThread) {
  const Space space(ops::every_operator(), {});
  for (const Uniform uniform : {Uniform::kSequences, Uniform::kPrograms}) {
    constexpr uint64_t kCount = 300;
    std::vector<std::string> forwards(kCount), backwards(kCount);
    Sampler first(space, 5, uniform);
    SampledProgram sampled;
    for (uint64_t i = 0; i < kCount; ++i)
      first.draw(11, i, sampled), forwards[i] = as_enumerated(sampled, space).key();
    std::thread([&] {
      Sampler second(space, 5, uniform);
      SampledProgram drawn;
      for (uint64_t i = kCount; i-- > 0;)
        second.draw(11, i, drawn), backwards[i] = as_enumerated(drawn, space).key();
    }).join();
    EXPECT_EQ(forwards, backwards);
    EXPECT_GT(std::set<std::string>(forwards.begin(), forwards.end()).size(), kCount - 5);
  }
}

TEST(Sampler, CountsTheGreatestLength) {
  const Space space(ops::every_operator(), {});
  for (const Uniform uniform : {Uniform::kSequences, Uniform::kPrograms}) {
    Sampler sampler(space, kMaxLength, uniform);
    EXPECT_TRUE(std::isfinite(sampler.choices()));
    SampledProgram sampled;
    sampler.draw(1, 0, sampled);
    EXPECT_EQ(sampled.steps.size(), static_cast<size_t>(kMaxLength));
  }
}

}  // namespace
}  // namespace nereid::synth
