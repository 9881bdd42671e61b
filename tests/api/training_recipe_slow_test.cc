// Every optimizer, compiled and run.
#include <gtest/gtest.h>

#include "base/recipe_tables.h"
#include "tests/api/training_run.h"

namespace hone::test {
namespace {

TEST(Optimizers, EachOneLowersTheLossWhenCompiled) {
  for (const RecipeKind& kind : recipe_kinds()) {
    if (kind.key != "optimizer.kind") continue;
    SCOPED_TRACE(std::string(kind.name));
    TrainingRun run(kLoss + "[optimizer]\nkind = \"" + std::string(kind.name) + "\"\n");
    Batch batch(0, 12);
    batch.rate = Tensor::scalar(kind.name == "adadelta" ? 1.0 : 0.02);
    const double before = run.step(plan::kTrainStep, batch);
    for (int i = 0; i < 20; ++i) run.step(plan::kTrainStep, batch);
    EXPECT_LT(run.step(plan::kEvalStep, batch), before - 1e-4);
  }
}

}  // namespace
}  // namespace hone::test
