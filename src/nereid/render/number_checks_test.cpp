#include "nereid/render/number_checks.h"

#include <gtest/gtest.h>

#include <limits>

namespace nereid::render {
namespace {

using trace::Arg;

std::string checks(const Arg& inputs) {
  return number_checks(inputs,
                       {[](size_t place) { return place == 1   ? "scale"
                                                  : place == 2 ? "options"
                                                               : ""; },
                        [](const std::string& key) { return key; }},
                       "  ");
}

TEST(NumberChecks, NameWhatIsExpectedAndWhatCame) {
  const Arg options{trace::Dict{.items = {{"slope", Arg{-0.5}}, {"size", Arg{int64_t{3}}}}, .computed = {}}};
  EXPECT_EQ(checks(Arg{trace::List{.items = {Arg{0.25}, Arg{1.5}, options}}}),
            "  if scale != 1.5:\n"
            "      raise ValueError(\"expected 1.5, got \" + str(scale))\n"
            "  if options[\"slope\"] != -0.5:\n"
            "      raise ValueError(\"expected -0.5, got \" + str(options[\"slope\"]))\n")
      << "what has no name is not checked, nor are integers";
  EXPECT_EQ(checks(Arg{trace::Dict{.items = {{"low", Arg{-std::numeric_limits<double>::infinity()}}},
                                   .computed = {}}}),
            "  if low != float(\"-inf\"):\n"
            "      raise ValueError(\"expected -inf, got \" + str(low))\n");
  EXPECT_EQ(
      checks(Arg{trace::List{.items = {Arg{int64_t{1}}, Arg{std::numeric_limits<double>::quiet_NaN()}}}}),
      "  if scale == scale:\n"
      "      raise ValueError(\"expected nan, got \" + str(scale))\n");
}

}  // namespace
}  // namespace nereid::render
