#include "nereid/trace/consistency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/trace/format/codec.h"

namespace nereid::trace {
namespace {

using testing::HasSubstr;

Trace golden(const char* name) {
  const auto text = read_file(std::string(NEREID_SOURCE_DIR "/tests/golden/traces/") + name).value();
  return decode(Json::parse(text)).value();
}

class Consistency : public testing::Test {
 protected:
  // Of a softmax of one input, three calls; and of gelu_linear, with parameters.
  const Trace reference_ = golden("softmax_candidate.Model.json");
  Trace candidate_ = golden("softmax_candidate.ModelNew.json");

  std::string why(int calls = 3) const { return find_forgery(candidate_, reference_, calls).value_or(""); }
  Phase& phase(PhaseKind kind, int call) {
    for (auto& phase : candidate_.phases)
      if (phase.kind == kind && phase.call == call) return phase;
    throw std::runtime_error("no such phase");
  }
  Value& input(int call) {
    return candidate_
        .values[static_cast<size_t>(tensors_in(phase(PhaseKind::kMakeInputs, call).inputs).at(0))];
  }
};

TEST_F(Consistency, WhatTheTracerWritesIsConsistent) {
  EXPECT_EQ(why(), "");
  EXPECT_EQ(find_forgery(golden("gelu_linear_candidate.ModelNew.json"), golden("gelu_linear.Model.json"), 3),
            std::nullopt);
}

TEST_F(Consistency, InputsAreThoseThatWereGiven) {
  input(1).sizes[0] -= 1;
  EXPECT_THAT(why(), HasSubstr("the inputs of call 1 are not those that were given"));
}

TEST_F(Consistency, InputsKeepTypeStridesAndPlace) {
  const Trace before = candidate_;
  for (const auto& change : std::vector<std::function<void(Value&)>>{[](Value& v) { v.dtype = DType::kI32; },
                                                                     [](Value& v) { v.strides.back() = 0; },
                                                                     [](Value& v) { v.offset = 1; }}) {
    candidate_ = before;
    change(input(0));
    EXPECT_THAT(why(), HasSubstr("the inputs of call 0")) << why();
  }
}

TEST_F(Consistency, InputsOfTwoCallsAreTwo) {
  phase(PhaseKind::kForward, 2).inputs = phase(PhaseKind::kForward, 1).inputs;
  EXPECT_THAT(why(), HasSubstr("forward of call 2 got other inputs than were made for it"));
}

TEST_F(Consistency, AllCallsAreThereInOrder) {
  EXPECT_THAT(why(2), HasSubstr("of 2 calls"));
  candidate_.phases.pop_back();
  EXPECT_THAT(why(), HasSubstr("its phases are not"));
}

TEST_F(Consistency, NothingElseIsAnInput) {
  for (size_t s = 0; s < candidate_.storages.size(); ++s)
    if (candidate_.storages[s].role == Role::kTemporary) candidate_.storages[s].role = Role::kInput;
  EXPECT_THAT(why(), HasSubstr("is called an input and is none"));
}

TEST_F(Consistency, NothingIsUsedBeforeItWasMade) {
  phase(PhaseKind::kForward, 0).steps.clear();
  EXPECT_THAT(why(), HasSubstr("forward of call 0 returns storage"));
}

}  // namespace
}  // namespace nereid::trace
