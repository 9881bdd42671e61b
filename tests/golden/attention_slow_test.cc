// Recorded transformers in narrow types, for GPUs: attention is one call forward and one backward, or the bodies beside them, and they train as in f32.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tests/golden/recorded_run.h"
#include "tests/support/environment.h"

namespace hone::test {
namespace {

void expect_near(const std::vector<double>& losses, const std::vector<double>& wanted, double share, const std::string& what) {
  ASSERT_EQ(losses.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], wanted[i], share * std::abs(wanted[i])) << what << ", step " << i;
}

class NarrowAttention : public testing::TestWithParam<const char*> {};

TEST_P(NarrowAttention, TrainsAsInF32) {
  const std::string model = GetParam();
  if (not is_recorded(model)) GTEST_SKIP() << kNotRecorded;
  constexpr double kShare = 0.03;
  const std::vector<double> wanted = losses_of_training(model, {});
  for (const char* precision : {"bf16", "f16"}) {
    const Setting on_sim = {.precision = precision, .target = "sim"};
    const std::vector<double> losses = losses_of_training(model, on_sim);
    expect_near(losses, wanted, kShare, std::string("calls in ") + precision);
    const ScopedVariable without("HONE_SIM", "libraries=0");
    expect_near(losses_of_training(model, on_sim), wanted, kShare, std::string("bodies in ") + precision);
  }
}

INSTANTIATE_TEST_SUITE_P(, NarrowAttention, testing::Values("torch_gpt_tiny", "hf_bert_tiny"), [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hone::test
