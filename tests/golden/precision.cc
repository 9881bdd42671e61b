#include "tests/golden/precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/golden/recorded_run.h"

namespace hone::test {

namespace {

double mean_of_last(const std::vector<double>& losses, std::ptrdiff_t count) { return std::accumulate(losses.end() - count, losses.end(), 0.0) / static_cast<double>(count); }

}  // namespace

void expect_trains_as_in_f32(const std::string& name, const std::string& precision, const std::vector<std::string>& keep_f32) {
  constexpr double kShare = 0.03;
  const std::vector<double> wanted = losses_of_training(name, {}), losses = losses_of_training(name, {.precision = precision, .keep_f32 = keep_f32});
  ASSERT_EQ(losses.size(), wanted.size());
  ASSERT_GE(losses.size(), 5U);
  EXPECT_NEAR(losses.back(), wanted.back(), kShare * std::abs(wanted.back())) << "the last loss in " << precision;
  EXPECT_NEAR(mean_of_last(losses, 5), mean_of_last(wanted, 5), kShare * std::abs(mean_of_last(wanted, 5))) << "the mean of the last five losses in " << precision;
  EXPECT_NE(losses, wanted) << "nothing ran in " << precision;
}

}  // namespace hone::test
