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

/// Hone's own names mean what they say here.
TEST(OtherNames, HoneNamesAreNoOtherNames) {
  for (const RecipeKind& kind : recipe_kinds()) EXPECT_EQ(hint_for_other_name(kind.key, kind.name), "") << kind.key << " = " << kind.name;
}

}  // namespace
}  // namespace hone
