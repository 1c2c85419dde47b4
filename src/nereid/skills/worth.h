// What a skill gains, from samples of the same model with it and without it on the same tasks.
//
// A group is one task under one question (model, policy, hardware, clock). An arm's time in a group is the
// geometric mean over its verified samples. Where an arm has none, it is the reference's time, because the
// original forward stays in use, but this never counts as a gain of the skill. A group where neither arm has
// one says nothing about speed.
//
//   gain of a group        g = ln(time without) - ln(time with)
//   speed-up               exp(mean of g), with the interval exp(mean of g +- t * s / sqrt(n)) over n groups
//   change of correctness  mean of d = share verified with - share verified without, with the same interval
//
// t is Student's quantile of n - 1 degrees of freedom for 95 %, s the standard deviation over groups: samples
// of one task are not independent, tasks are. A single group has no interval.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nereid/gpu/statistics.h"

namespace nereid::skills {

// One judged answer.
struct Sample {
  std::string skill{};  // empty: without any
  int64_t version = 0;  // 0 without a skill
  std::string question{}, task{};
  int64_t number = 0;
  bool verified = false;
  double ms = 0;            // of a verified one
  double reference_ms = 0;  // by the same clock
};

struct Worth {
  int64_t groups = 0;                              // with samples of both arms
  int64_t with = 0, without = 0;                   // samples of these groups
  int64_t compared = 0;                            // groups that say something about speed
  double speedup = 1;                              // 1 where none does
  gpu::Interval speedup_interval{};                // 95 %; 0 to infinity where `compared` is less than 2
  double correctness = 0;                          // change of the verified share
  gpu::Interval correctness_interval{};            // 95 %; -1 to 1 where `groups` is less than 2
  double verified_with = 0, verified_without = 0;  // shares, the mean over groups
};

// Of samples of one skill's version, and of samples without any. Groups without both arms are left out.
Worth worth_of(const std::vector<Sample>& samples);
nlohmann::json to_json(const Worth& worth);

// P(|T| <= t) of Student's distribution with `freedom` degrees of freedom (Abramowitz and Stegun, 26.7.3 and
// 26.7.4); the t at which it is `confidence`. freedom >= 1.
double student_within(double t, int64_t freedom);
double student_quantile(double confidence, int64_t freedom);

}  // namespace nereid::skills
