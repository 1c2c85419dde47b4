#include "nereid/synth/program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "nereid/synth/sample/degeneracy.h"
#include "nereid/synth/sample/maker.h"
#include "nereid/synth/sample/size_class.h"
#include "nereid/synth/write/emit.h"
#include "tests/support/enumerate.h"

namespace nereid::synth {
namespace {

// The graph as text, with everything that matters: what equal hashes must agree in.
std::string graph(const Program& program, Ref ref) {
  if (ref.fresh) {
    const Input& input = program.inputs[ref.index];
    return fmt::format("({} {} {})", ops::to_string(input.range), input.bound,
                       fmt::join(input.shape.dims.begin(), input.shape.dims.begin() + input.shape.rank, "x"));
  }
  const Step& step = program.steps[ref.index];
  std::vector<std::string> operands;
  for (size_t s = 0; s < step.operands.size(); ++s)
    operands.push_back(s == 1 && step.tap > 0 ? fmt::format("tap{}", step.tap)
                                              : graph(program, step.operands[s]));
  if (step.applied.op->commutes && step.tap == 0) std::sort(operands.begin(), operands.end());
  const ops::Form& form = *step.applied.form;
  return fmt::format("{}[{} {} {} {} {} {} {}{}]{}({})", step.applied.op->name,
                     form.all && form.slot[0].rank == 1 ? 0 : form.dim, form.dim2, form.dim3,
                     form.all && form.slot[0].rank > 1, form.kernel, form.stride, form.padding,
                     form.keep ? " kept" : "", fmt::join(form.order, ""), fmt::join(operands, ", "));
}
std::string graph(const Program& program) {
  std::vector<std::string> results;
  for (const int index : {static_cast<int>(program.steps.size()) - 1, program.waiting}) {
    if (index < 0) continue;
    const ops::Shape& out = program.steps[static_cast<size_t>(index)].applied.out;
    results.push_back(graph(program, {.fresh = false, .index = static_cast<uint16_t>(index)}) +
                      fmt::format("{}", fmt::join(out.dims.begin(), out.dims.begin() + out.rank, "x")));
  }
  std::sort(results.begin(), results.end());
  return fmt::format("{}", fmt::join(results, " and "));
}

// Over a small space, where duplicates are many: equal graphs have equal hashes, others others.
TEST(Hashes, AreEqualForEqualGraphsAlone) {
  std::vector<const ops::Operator*> few;
  for (const auto* name : {"add", "sub", "relu", "tanh", "sum", "matmul", "where"})
    few.push_back(ops::find(name));
  const Space space(few, {.elements = 2, .work = 3});
  Sampler sampler(space, 3, Uniform::kSequences);
  std::map<uint64_t, std::string> known;
  std::map<std::string, uint64_t> hashes;
  SampledProgram sampled;
  Program program;
  uint64_t again = 0;
  for (uint64_t i = 0; i < 30'000; ++i) {
    sampler.draw(1, i, sampled);
    resolve(sampled, space, program);
    const std::string text = graph(program);
    const uint64_t hash = hashes_of(program).program;
    const auto [place, fresh] = known.emplace(hash, text);
    again += fresh ? 0 : 1;
    ASSERT_EQ(place->second, text);
    ASSERT_EQ(hashes.emplace(text, hash).first->second, hash) << text;
  }
  EXPECT_GT(again, 100u);
}

TEST(Hashes, DoNotMindTheOrderOfWhatCommutes) {
  const Space space(ops::every_operator(), {});
  Sampler sampler(space, 5, Uniform::kSequences);
  SampledProgram sampled;
  Program program;
  int swapped = 0;
  for (uint64_t i = 0; i < 2'000; ++i) {
    sampler.draw(2, i, sampled);
    resolve(sampled, space, program);
    const uint64_t before = hashes_of(program).program;
    for (Step& step : program.steps)
      if (step.applied.op->commutes && step.tap == 0 && step.applied.operands[0] == step.applied.operands[1])
        std::swap(step.operands[0], step.operands[1]), ++swapped;
    ASSERT_EQ(hashes_of(program).program, before);
  }
  EXPECT_GT(swapped, 50);
}

// Every value but the results is used, every shape is what the step that makes it says, and bounds are kept.
TEST(Programs, HaveNoDeadValuesAndKeepTheirBounds) {
  for (const Uniform uniform : {Uniform::kSequences, Uniform::kPrograms}) {
    const Bounds bounds{.elements = 6, .work = 8};
    const Space space(ops::every_operator(), bounds);
    Maker maker(space, {.length = 8, .uniform = uniform, .seed = 5});
    Made made;
    for (uint64_t i = 0; i < 1'000; ++i) {
      maker.draw(i, 0, made);
      if (made.outcome == Outcome::kNoSize) continue;
      const Uses uses = uses_of(made.program);
      for (size_t s = 0; s < made.program.steps.size(); ++s) {
        const Step& step = made.program.steps[s];
        const bool result = s + 1 == made.program.steps.size() || static_cast<int>(s) == made.program.waiting;
        EXPECT_EQ(uses.count[s] > 0, !result);
        EXPECT_LE(step.applied.out.elements(), int64_t{1} << (3 * bounds.elements));
        for (size_t k = 0; k < step.operands.size(); ++k) {
          const size_t slot = std::min<size_t>(k, step.applied.form->slots - 1U);
          ASSERT_EQ(made.program.shape(step.operands[k]), step.applied.operands[slot]);
          ASSERT_TRUE(step.operands[k].fresh || step.operands[k].index < s);
        }
        for (size_t d = 0; d < step.applied.out.rank; ++d) {
          EXPECT_GE(step.applied.out.dims[d], 1);
          EXPECT_LE(step.applied.out.dims[d], 1 << 15);
        }
      }
    }
  }
}

TEST(Values, KnowWhatIsConstant) {
  // A softmax summed along its axis, and along another one.
  const Space space({ops::find("softmax"), ops::find("sum")}, {.elements = 4, .work = 8});
  Sampler sampler(space, 2, Uniform::kPrograms);
  SampledProgram sampled;
  Program program;
  int along = 0, across = 0;
  for (uint64_t i = 0; i < 4'000; ++i) {
    sampler.draw(1, i, sampled);
    resolve(sampled, space, program);
    const Step &first = program.steps[0], &second = program.steps[1];
    if (program.waiting >= 0) continue;
    if (first.applied.op->name != "softmax" || second.applied.op->name != "sum") continue;
    std::string why;
    const bool constant = is_degenerate(program, &why);
    if (second.applied.form->all || second.applied.form->dim == first.applied.form->dim) {
      EXPECT_TRUE(constant);
      EXPECT_NE(why.find("sum: of what is fixed"), std::string::npos) << why;
      ++along;
    } else if (!constant) {
      ++across;
    }
  }
  EXPECT_GT(along, 50);
  EXPECT_GT(across, 50);
}

TEST(Emission, IsReproducibleAndVariesInStyle) {
  const Space space(ops::every_operator(), {});
  const MakerConfig config{.length = 5, .seed = 9};
  Maker maker(space, config), other(space, config);
  Made made, again;
  std::set<std::string> beginnings;
  for (uint64_t i = 0; i < 300; ++i) {
    maker.draw(i, 0, made), other.draw(i, 0, again);
    ASSERT_EQ(made.outcome, again.outcome);
    if (made.outcome != Outcome::kMade) continue;
    maker.write(made), other.write(again);
    ASSERT_EQ(made.code, again.code);
    for (const char* part :
         {"import torch\n", "class Model(", "nn.Module):", "def get_inputs():", "def get_init_inputs():"})
      ASSERT_NE(made.code.find(part), std::string::npos) << made.code;
    for (const char* part : {"class Block", "nn.Sequential", "def _apply", "nn.Parameter", "\"\"\"", "# ",
                             "batch_size", "dim=self.dim", ".shape\n", ".size()\n", "import math\n",
                             "torch.nn.functional.", "Args:", "return {\""})
      if (made.code.find(part) != std::string::npos) beginnings.insert(part);
  }
  EXPECT_EQ(beginnings.size(), 14u);
}

TEST(Emission, ThinksUpNames) {
  const Space space(ops::every_operator(), {});
  Maker maker(space, {.length = 3, .seed = 4});
  Made made;
  std::set<std::string> arguments;
  int programs = 0;
  for (uint64_t i = 0; i < 600; ++i) {
    maker.draw(i, 0, made);
    if (made.outcome != Outcome::kMade) continue;
    maker.write(made), ++programs;
    const size_t begin = made.code.find("    def forward(self, ", made.code.find("class Model(")) + 22;
    arguments.insert(made.code.substr(begin, made.code.find_first_of(",:)", begin) - begin));
  }
  EXPECT_GT(programs, 400);
  EXPECT_GT(arguments.size(), 100u);  // where lists alone give some dozen
}

TEST(FreeSizes, AreOfTheirClassAndKeepWhatIsEqual) {
  const Space space(ops::every_operator(), {});
  Maker gridded(space, {.length = 3, .seed = 6}), maker(space, {.length = 3, .seed = 6, .free_sizes = 1});
  Made made, grid;
  int freed = 0;
  std::set<int32_t> seen;
  for (uint64_t i = 0; i < 1000; ++i) {
    maker.draw(i, 0, made), gridded.draw(i, 0, grid);
    if (made.outcome != Outcome::kMade || grid.outcome != Outcome::kMade) continue;
    ASSERT_EQ(made.hashes.structure, grid.hashes.structure);
    ++freed;
    const ops::Shape &out = made.program.steps.back().applied.out,
                     &before = grid.program.steps.back().applied.out;
    ASSERT_EQ(out.rank, before.rank);
    for (size_t d = 0; d < out.rank; ++d) {
      ASSERT_TRUE(size_class_of(out.dims[d]) == size_class_of(before.dims[d]) ||
                  out.dims[d] > cap(kClasses - 1));
      seen.insert(out.dims[d]);
    }
  }
  EXPECT_GT(freed, 800);
  EXPECT_GT(seen.size(), 150u);  // the grid has 55
}

TEST(FreeSizes, HaveDigitsThatRepeat) {
  const Space space({ops::find("relu")}, {});
  Maker maker(space, {.length = 1, .seed = 6, .free_sizes = 1});
  Made made;
  int repeated = 0, round = 0, near = 0, all = 0;
  for (uint64_t i = 0; i < 2'000; ++i) {
    maker.draw(i, 0, made);
    const ops::Shape& out = made.program.steps.back().applied.out;
    for (size_t d = 0; d < out.rank; ++d) {
      const std::string text = std::to_string(out.dims[d]);
      if (text.size() < 3) continue;
      ++all;
      repeated += text.find_first_not_of(text[0]) == text.npos ? 1 : 0;
      round += text.find_first_not_of('0', 1) == text.npos ? 1 : 0;
      near += text.size() > 3 &&
                      text.substr(1, text.size() - 2).find_first_not_of('0') == std::string::npos &&
                      text.back() != '0'
                  ? 1
                  : 0;
    }
  }
  EXPECT_GT(repeated, all / 40);  // any size of three digits: 1 %
  EXPECT_GT(round, all / 40);
  EXPECT_GT(near, all / 40);
}

TEST(FreeForms, HaveWindowsThatNoFormHas) {
  std::vector<const ops::Operator*> windowed;
  for (const ops::Operator& op : ops::catalogue())
    if (ops::has_window(op)) windowed.push_back(&op);
  EXPECT_EQ(windowed.size(), 12u);
  const Space space(windowed, {});
  Maker plain(space, {.length = 2, .seed = 6}), maker(space, {.length = 2, .seed = 6, .free_forms = 1});
  Made made, before;
  std::set<std::string> seen;
  int same = 0, other = 0;
  for (uint64_t i = 0; i < 3'000; ++i) {
    maker.draw(i, 0, made), plain.draw(i, 0, before);
    if (made.outcome != Outcome::kMade || before.outcome != Outcome::kMade) continue;
    ++(made.hashes.structure == before.hashes.structure ? same : other);
    maker.write(made);
    for (const char* part :
         {"stride=3", "stride=(", "padding=\"same\"", "padding=(", "dilation=2", "groups=2", "groups=4",
          "bias=False", "ceil_mode=True", "count_include_pad=False",
          "output_padding=", "kernel_size=", "(3, 3)", "(1, 7)", "(5, 3)"})
      if (made.code.find(part) != std::string::npos) seen.insert(part);
    for (const Step& step : made.program.steps) {
      const ops::Window& window = step.applied.window;
      for (size_t d = 0; d + 2 < step.applied.out.rank; ++d) {
        // As PyTorch computes the result's size.
        const int32_t in = step.applied.operands[0].dims[d + 2], out = step.applied.out.dims[d + 2];
        const int32_t stride = window.stride[d],
                      margin = 2 * window.padding[d] - window.dilation[d] * (window.kernel[d] - 1);
        int32_t expected = (in + margin - 1 + (window.ceil ? stride - 1 : 0)) / stride + 1;
        if (window.ceil && (expected - 1) * stride >= in + window.padding[d]) --expected;
        if (ops::is_transposed(*step.applied.op)) expected = (in - 1) * stride - margin + window.rest[d] + 1;
        ASSERT_EQ(out, expected) << made.code;
      }
    }
  }
  EXPECT_EQ(seen.size(), 15u);
  EXPECT_GT(other, 20 * same);
}

TEST(Split, FollowsFromTheStructure) {
  int held = 0;
  const Space space(ops::every_operator(), {});
  Maker maker(space, {.length = 3, .seed = 2});
  Made made, resized;
  int made_count = 0;
  for (uint64_t i = 0; i < 2'000; ++i) {
    maker.draw(i, 0, made);
    if (made.outcome != Outcome::kMade) continue;
    ++made_count;
    held += held_out(made.hashes.structure, 0.1) ? 1 : 0;
    maker.draw(i, 1, resized);
    if (resized.outcome == Outcome::kMade) {
      ASSERT_EQ(made.hashes.structure, resized.hashes.structure);
    }
  }
  EXPECT_NEAR(held, 0.1 * made_count, 60);
}

}  // namespace
}  // namespace nereid::synth
