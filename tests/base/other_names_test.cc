#include "base/other_names.h"

#include <gtest/gtest.h>

#include "base/recipe_tables.h"
#include "base/text.h"

namespace hone {
namespace {

TEST(OtherNames, SpellingDoesNotCount) {
  const std::string hint = hint_for_other_name("loss.kind", "sparse_categorical_crossentropy");
  EXPECT_NE(hint, "");
  for (const char* name : {"SparseCategoricalCrossentropy", "sparse-categorical-crossentropy", "CrossEntropyLoss"}) EXPECT_EQ(hint_for_other_name("loss.kind", name), hint) << name;
  EXPECT_EQ(flags_for_other_name("--batch_size"), "--batch");
  EXPECT_EQ(flags_for_other_name("--batch-size"), "--batch");
}

TEST(OtherNames, PlacesAreKeptApart) {
  EXPECT_NE(hint_for_other_name("loss.kind", "mean_squared_error"), "");
  EXPECT_EQ(hint_for_other_name("optimizer.kind", "mean_squared_error"), "");
  EXPECT_NE(hint_for_other_name("recipe", "shuffle"), "");
  EXPECT_EQ(hint_for_other_name("", "shuffle"), "");
}

TEST(OtherNames, NothingIsSaidOfWhatNobodyKnows) {
  for (const char* name : {"", "_", "softmax_cross_entropy", "xyzzy"}) {
    EXPECT_EQ(hint_for_other_name("loss.kind", name), "") << name;
    EXPECT_EQ(flags_for_other_name(name), "") << name;
  }
}

TEST(OtherNames, ASectionHasNamesOfItsOwn) {
  const auto hint = [](const std::string& key) {
    RecipeSource source;
    add_override(source, key + "=1");
    try {
      resolve(source);
      return std::string();
    } catch (const Error& error) {
      return error.diags().front().notes.front();
    }
  };
  for (const auto& [key, own] : {std::pair("schedule.alpha", "schedule.final_fraction"), {"schedule.decay_rate", "schedule.factor"}, {"optimizer.alpha", "optimizer.rho"}, {"optimizer.decay_rate", "optimizer.rho"},
                                 {"optimizer.use_ema", "train.ema_decay"}, {"optimizer.ema_momentum", "train.ema_decay"}, {"train.patience", "train.early_stopping.patience"}, {"train.steps_per_epoch", "--limit"},
                                 {"model.kernel_regularizer", "optimizer.weight_decay"}, {"schedule.staircase", "kind = \"step\""}, {"schedule.values", "schedule.fractions"}, {"loss.pos_weight", "class_weights = [1, POS_WEIGHT]"}})
    EXPECT_NE(hint(key).find(own), std::string::npos) << key << ": " << hint(key);
  for (const char* loss : {"categorical_hinge", "GaussianNLLLoss", "BinaryFocalCrossentropy"}) EXPECT_NE(hint_for_other_name("loss.kind", loss).find("not there"), std::string::npos) << loss;
}

/// Hone's own names mean what they say here.
TEST(OtherNames, HoneNamesAreNoOtherNames) {
  for (const RecipeKind& kind : recipe_kinds()) EXPECT_EQ(hint_for_other_name(kind.key, kind.name), "") << kind.key << " = " << kind.name;
}

}  // namespace
}  // namespace hone
