#include "nereid/train/rl/objective/curriculum.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nereid/base/check.h"
#include "nereid/base/json_field.h"
#include "nereid/train/data/packer.h"

namespace nereid::train {
namespace {

constexpr double kFaster = 4;

}  // namespace

Curriculum::Curriculum(const CurriculumSettings& settings, uint64_t seed)
    : settings_(settings), seed_(seed), progress_(static_cast<size_t>(settings.classes)) {
  NEREID_CHECK(settings.classes >= 1, "at least one class, got {}", settings.classes);
  if (settings.kind != CurriculumSettings::Kind::kMixture) return;
  NEREID_CHECK(std::ssize(settings.shares) == settings.classes &&
                   std::ranges::all_of(settings.shares, [](double s) { return s >= 0; }) &&
                   std::ranges::any_of(settings.shares, [](double s) { return s > 0; }),
               "a share for each of {} classes, not negative, not all zero", settings.classes);
}

// How far the newer rewards are from the older ones, up or down: a class that is being forgotten is worth a
// look, too. An unseen one changes as much as any could.
double Curriculum::Progress::change() const {
  if (rollouts < kFaster) return 1;
  return std::min(std::abs(fast - slow), 1.0);
}

std::vector<double> Curriculum::shares() const {
  const auto count = static_cast<size_t>(settings_.classes);
  std::vector<double> shares(count, 0.0);
  switch (settings_.kind) {
    case CurriculumSettings::Kind::kLevels:
      shares[static_cast<size_t>(level_)] = 1;
      break;
    case CurriculumSettings::Kind::kMixture: {
      const double sum = std::accumulate(settings_.shares.begin(), settings_.shares.end(), 0.0);
      for (size_t c = 0; c < count; ++c) shares[c] = settings_.shares[c] / sum;
      break;
    }
    case CurriculumSettings::Kind::kLearnt: {
      double sum = 0;
      for (const Progress& progress : progress_) sum += progress.change();
      for (size_t c = 0; c < count; ++c) {
        const double even = 1 / static_cast<double>(count);
        shares[c] = settings_.min_share * even +
                    (1 - settings_.min_share) * (sum > 0 ? progress_[c].change() / sum : even);
      }
      break;
    }
  }
  return shares;
}

int64_t Curriculum::draw() {
  constexpr uint64_t kUnits = uint64_t{1} << 32;
  const double place = static_cast<double>(permuted(draws_ % kUnits, kUnits, seed_ + draws_ / kUnits)) /
                       static_cast<double>(kUnits);
  ++draws_;
  const auto all = shares();
  double sum = 0;
  int64_t last = 0;
  for (size_t c = 0; c < all.size(); ++c) {
    if (all[c] <= 0) continue;
    sum += all[c], last = static_cast<int64_t>(c);
    if (place < sum) return last;
  }
  return last;  // what rounding left at the end
}

void Curriculum::rewarded(int64_t of_class, double reward) {
  Progress& progress = progress_.at(static_cast<size_t>(of_class));
  ++progress.rollouts;
  // At first plain means, then averages that forget.
  const auto follow = [&](double& average, double memory) {
    average += (reward - average) / std::min(progress.rollouts, memory);
  };
  follow(progress.slow, settings_.memory);
  follow(progress.fast, settings_.memory / kFaster);
}

bool Curriculum::looked(int64_t of_class, double pass_at_1) {
  if (settings_.kind != CurriculumSettings::Kind::kLevels || of_class != level_ ||
      pass_at_1 < settings_.promote_at || level_ + 1 >= settings_.classes)
    return false;
  ++level_;
  return true;
}

Json Curriculum::state() const {
  Json classes = Json::array();
  for (const Progress& progress : progress_)
    classes.push_back({{"rollouts", progress.rollouts}, {"slow", progress.slow}, {"fast", progress.fast}});
  return {{"level", level_}, {"draws", draws_}, {"classes", classes}};
}

Status Curriculum::restore(const Json& state, const std::string& what) {
  const JsonField root(state, what);
  NEREID_TRY(const auto level, root.at("level"));
  NEREID_TRY(const int64_t new_level, level.integer(0, settings_.classes - 1));
  NEREID_TRY(const auto draws, root.at("draws"));
  NEREID_TRY(const int64_t new_draws, draws.integer(0, INT64_MAX));
  NEREID_TRY(const auto classes, root.at("classes"));
  NEREID_TRY(const size_t count, classes.size(progress_.size()));
  if (count != progress_.size()) return classes.expected(fmt::format("{} classes", progress_.size()));
  std::vector<Progress> read;
  NEREID_TRY_STATUS(classes.each(count, [&](const JsonField& field) -> Status {
    Progress& progress = read.emplace_back();
    for (const auto& [key, value] :
         {std::pair{"rollouts", &progress.rollouts}, {"slow", &progress.slow}, {"fast", &progress.fast}}) {
      NEREID_TRY(const auto number, field.at(key));
      NEREID_TRY(*value, number.number());
    }
    return ok_status();
  }));
  level_ = new_level, draws_ = static_cast<uint64_t>(new_draws), progress_ = std::move(read);
  return ok_status();
}

}  // namespace nereid::train
