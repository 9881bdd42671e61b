#include "base/diag.h"

#include <gtest/gtest.h>

#include <set>

#include "base/check.h"

namespace hone {
namespace {

TEST(Loc, NamesTheNodeAsTheUserKnowsIt) {
  EXPECT_EQ(to_string(Loc{}), "");
  EXPECT_EQ(to_string(Loc{.file = "mnist.onnx", .node = "fc1/MatMul"}), "at node \"fc1/MatMul\" in mnist.onnx");
  EXPECT_EQ(to_string(Loc{.file = "model.hir", .line = 12}), "in model.hir:12");
  EXPECT_EQ(to_string(Loc{.line = 3}), "at line 3");
  EXPECT_EQ(to_string(Loc{.node = "MatMul_3", .layer = "encoder/attention"}), "at node \"MatMul_3\" of layer \"encoder/attention\"");
}

TEST(Loc, EmptyMeansThatNothingIsKnown) {
  EXPECT_TRUE(Loc{}.empty());
  EXPECT_FALSE(Loc{.file = "a.onnx"}.empty());
  EXPECT_FALSE(Loc{.node = "n"}.empty());
  EXPECT_FALSE(Loc{.layer = "l"}.empty());
  EXPECT_FALSE(Loc{.derived = "gradient of"}.empty());
  EXPECT_FALSE(Loc{.line = 1}.empty());
}

TEST(Loc, DerivationKeepsTheOriginAndPutsTheNewestFirst) {
  const Loc origin{.file = "mnist.onnx", .node = "Softmax_7", .layer = "head"};
  const Loc lowered = derived_from(origin, "lowered from softmax");
  EXPECT_EQ(lowered.file, "mnist.onnx");
  EXPECT_EQ(lowered.node, "Softmax_7");
  EXPECT_EQ(lowered.layer, "head");
  EXPECT_EQ(lowered.derived, "lowered from softmax");
  const Loc gradient = derived_from(lowered, "gradient of");
  EXPECT_EQ(gradient.derived, "gradient of, lowered from softmax");
  EXPECT_EQ(to_string(gradient), "gradient of, lowered from softmax at node \"Softmax_7\" of layer \"head\" in mnist.onnx");
}

TEST(Diag, ReadsAsCodeMessagePlaceAndWayOut) {
  const Diag diag{Code::kShape,
                  "MatMul: inner dimensions differ: 784 and 785",
                  {.file = "mnist.onnx", .node = "fc1/MatMul"},
                  {"%w is initializer \"fc1.weight\"; was it exported transposed?"}};
  EXPECT_EQ(to_string(diag),
            "error[HN-0107]: MatMul: inner dimensions differ: 784 and 785\n"
            "  at node \"fc1/MatMul\" in mnist.onnx\n"
            "  note: %w is initializer \"fc1.weight\"; was it exported transposed?");
}

TEST(Diag, LeavesOutAnUnknownPlaceAndNamesItsSeverity) {
  EXPECT_EQ(to_string(Diag{Code::kUsage, "no such flag", {}, {}}), "error[HN-0001]: no such flag");
  EXPECT_EQ(to_string(Diag{Code::kModelWarning, "odd", {}, {"a", "b"}, Severity::kWarning}), "warning[HN-0190]: odd\n  note: a\n  note: b");
}

TEST(Code, ExitCodeFollowsFromTheKindOfProblem) {
  EXPECT_EQ(exit_code(Code::kUsage), 2);
  EXPECT_EQ(exit_code(Code::kNotOnnx), 3);
  EXPECT_EQ(exit_code(Code::kTooLarge), 3);
  EXPECT_EQ(exit_code(Code::kDataRange), 4);
  EXPECT_EQ(exit_code(Code::kRecipeKey), 5);
  EXPECT_EQ(exit_code(Code::kMemory), 6);
  EXPECT_EQ(exit_code(Code::kFileWrite), 7);
  EXPECT_EQ(exit_code(Code::kNotFinite), 8);
  EXPECT_EQ(exit_code(Code::kPlanVersion), 10);
  EXPECT_EQ(exit_code(Code::kPeer), 9);
}

TEST(Code, EveryCodeHasItsOwnNumberAndAnExitCode) {
  std::set<int> numbers;
#define HONE_CODE(name, number)                                        \
  EXPECT_TRUE(numbers.insert(number).second) << #name << " is not new"; \
  EXPECT_GE(exit_code(Code::name), 2) << #name;
  HONE_ERROR_CODES(HONE_CODE)
#undef HONE_CODE
}

TEST(Error, SaysAllDiagsAndExitsByTheFirst) {
  const Error error({Diag{Code::kRecipeKey, "unknown key \"lr\"", {}, {}}, Diag{Code::kShape, "second", {}, {}}});
  EXPECT_EQ(error.exit_code(), 5);
  EXPECT_EQ(error.diags().size(), 2u);
  EXPECT_STREQ(error.what(), "error[HN-0202]: unknown key \"lr\"\nerror[HN-0107]: second");
}

TEST(Error, WithoutADiagIsAMistakeInHone) { EXPECT_THROW(Error(std::vector<Diag>{}), InternalError); }

TEST(Diags, ThrowsAllErrorsAtOnceAndKeepsWarningsToItself) {
  Diags diags;
  EXPECT_NO_THROW(diags.throw_if_errors());
  diags.warn(Code::kModelWarning, "softmax twice");
  EXPECT_FALSE(diags.has_errors());
  EXPECT_NO_THROW(diags.throw_if_errors());
  diags.error(Code::kUnknownOp, "Foo");
  diags.append(Error(Code::kUnknownOp, "Bar"));
  EXPECT_TRUE(diags.has_errors());
  EXPECT_EQ(diags.all().size(), 3u);
  try {
    diags.throw_if_errors();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    ASSERT_EQ(error.diags().size(), 2u);
    EXPECT_EQ(error.diags()[0].message, "Foo");
    EXPECT_EQ(error.diags()[1].message, "Bar");
    EXPECT_EQ(error.exit_code(), 3);
  }
}

TEST(Check, FailureNamesThePlaceAndAsksForAReport) {
  const int two = 2;
  EXPECT_NO_THROW(HONE_CHECK(two == 2, "arithmetic"));
  try {
    HONE_CHECK(two == 3, "two is not three");
    FAIL() << "nothing was thrown";
  } catch (const InternalError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("two is not three"), std::string::npos) << text;
    EXPECT_NE(text.find("diag_test.cc"), std::string::npos) << text;
    EXPECT_NE(text.find("please report"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace hone
