#include "base/patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/diag.h"

namespace hone {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> notes_for(const std::string& pattern, const std::vector<std::string>& names) {
  try {
    refuse_pattern("model.freeze", pattern, "weight", "weights", names);
  } catch (const Error& error) { return error.diags().at(0).notes; }
}

TEST(Patterns, RefusedOneIsShownAWiderOneThatMatches) {
  const std::vector<std::string> names = {"m.encoder.weight", "m.head.weight"};
  const std::string all = "weights: \"m.encoder.weight\", \"m.head.weight\"";
  EXPECT_THAT(notes_for("head.*", names), ElementsAre("did you mean \"*head.*\"? A pattern means whole names", all));
  EXPECT_THAT(notes_for("m.head", names), ElementsAre("did you mean \"m.head*\"? A pattern means whole names", all));
  EXPECT_THAT(notes_for("head", names), ElementsAre("did you mean \"*head*\"? A pattern means whole names", all));
  EXPECT_THAT(notes_for("m.haed.weight", names), ElementsAre("did you mean \"m.head.weight\"?", all));
  EXPECT_THAT(notes_for("backbone.*", names), ElementsAre(all));
}

TEST(Patterns, WhereThereIsNothingToMatchThatIsSaid) { EXPECT_THAT(notes_for("dense*", {}), ElementsAre("weights: there are none")); }

}  // namespace
}  // namespace hone
