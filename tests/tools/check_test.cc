// hone-compile --check: one report with everything that is wrong with a model and a recipe, and nothing where nothing is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/frontend/test_model.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tools/run_tool.h"

namespace hone::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

int count(const std::string& text, const std::string& piece) {
  int found = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++found;
  return found;
}

ToolRun check(const TestModel& model, const std::string& flags = "", const std::string& recipe = "") {
  const TempFolder folder;
  save_model(model.proto, folder / "model.onnx");
  if (not recipe.empty()) folder.write("train.toml", recipe);
  return run_tool(folder.path(), "hone-compile model.onnx --check" + flags + (recipe.empty() ? "" : " -r train.toml"));
}

/// Ten nodes and values that are wrong, each in its own way.
TestModel with_seven_problems() {
  TestModel model;
  model.input("x", {"N", 4}).input("unread", {"N", 2}).initializer("w", wavy({4, 3})).initializer("v", wavy({5, 3})).initializer("shape", ints({7, 3})).output("y").output("z");
  model.node("Frobnicate", {"x"}, {"a"}).named("unknown");
  model.node("StringConcat", {"x", "x"}, {"b"}).named("strings");
  model.node("Sotfmax", {"x"}, {"c"}).named("misspelled");
  model.node("MatMul", {"x", "v"}, {"d"}).named("shapes");
  model.node("Add", {"x", "imgae"}, {"e"}).named("missing");
  model.node("Transpose", {"x"}, {"f"}).named("attribute").set("perm", std::vector<std::int64_t>{0, 5});
  model.node("Reshape", {"w", "shape"}, {"g"}).named("elements");
  model.node("MatMul", {"x", "w"}, {"good"}).named("fine");
  model.node("Sum", {"a", "b", "c", "d", "e", "f", "g", "good"}, {"y"}).named("all");
  return model;
}

TEST(Check, TenProblemsGiveTenMessagesInOneRun) {
  const ToolRun run = check(with_seven_problems(), " --dim M=3", "[loss]\nkind = \"huh\"\n[optimizer]\nkind = \"sgd\"\nlearning_rate = -1\n[data]\nbatch_sise = 3\n");
  EXPECT_EQ(run.exit, 3);
  for (const std::string piece : {"operator Frobnicate is not supported", "operator StringConcat is not supported", "operator Sotfmax is not supported", "\"shapes\"",
                                  "\"imgae\", which nothing produces", "\"attribute\"", "\"elements\"", "output of the model is \"z\"", "batch_sise", "loss.kind", "learning_rate"})
    EXPECT_THAT(run.out, HasSubstr(piece));
  EXPECT_GE(count(run.out, "error[HN-"), 10) << run.out;
  EXPECT_GE(count(run.out, "note: "), count(run.out, "error[HN-")) << "each with a way out";
  EXPECT_THAT(run.out, ContainsRegex("StringConcat +1 +no: Hone has no strings"));
  EXPECT_THAT(run.out, ContainsRegex("MatMul +2 +yes +yes"));
  EXPECT_THAT(run.out, ContainsRegex("Sotfmax +1 +no: ONNX has no such operator"));
}

TEST(Check, NamesTheNodeThatCutsAWeightOff) {
  TestModel model;
  model.input("x", {"N", 4}).initializer("w", wavy({4, 3})).initializer("chosen", wavy({4, 3})).output("y");
  model.node("MatMul", {"x", "w"}, {"h"});
  model.node("MatMul", {"x", "chosen"}, {"scores"});
  model.node("ArgMax", {"scores"}, {"best"}).named("pick").set("axis", 1).set("keepdims", 1);
  model.node("Cast", {"best"}, {"best_f"}).set("to", 1);
  model.node("Mul", {"h", "best_f"}, {"y"});
  const ToolRun run = check(model);
  EXPECT_EQ(run.exit, 0) << "one weight can be trained";
  EXPECT_THAT(run.out, ContainsRegex("chosen +f32\\[4,3\\] +no gradient reaches it: .* at node \"pick\""));
  EXPECT_THAT(run.out, HasSubstr("freeze = [\"chosen\"]"));
  EXPECT_THAT(run.out, HasSubstr("1 weights are trained, 1 are not reached by a gradient; 0 problems"));
  EXPECT_EQ(check(model, "", "[model]\ntrain_only = [\"*\"]\n").exit, 3) << "a weight that is asked for by name must be reached";
}

TEST(Check, ListsNumbersThatAreTakenForConstants) {
  TestModel model;
  model.input("x", {"N", 4}).initializer("w", wavy({4, 3})).initializer("s", f32({1}, {0.5F})).output("y");
  model.node("MatMul", {"x", "w"}, {"h"});
  model.node("Mul", {"h", "s"}, {"y"});
  EXPECT_THAT(check(model).out, ContainsRegex("s +f32\\[1\\] +no: one element, as an epsilon has; model.train_only can name it"));
  EXPECT_THAT(check(model, "", "[model]\ntrain_only = [\"s\", \"w\"]\n").out, ContainsRegex("s +f32\\[1\\] +yes"));
}

TEST(Check, WithoutAnyWeightThereIsNothingToTrain) {
  TestModel model;
  model.input("x", {"N", 4}).output("y");
  model.node("Relu", {"x"}, {"y"});
  const ToolRun run = check(model);
  EXPECT_EQ(run.exit, 3);
  EXPECT_THAT(run.out, HasSubstr("no weight of the model is reached"));
}

TEST(Check, FindsWhatLossAndWeightsLackAtOnce) {
  TestModel model;
  model.input("x", {"N", 4}).initializer("w", wavy({4, 3})).output("y");
  model.node("MatMul", {"x", "w"}, {"y"});
  const ToolRun run = check(model, "", "[model]\noutput = \"yy\"\nfreeze = [\"wieght\"]\n[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\n");
  EXPECT_EQ(run.exit, 3);
  EXPECT_THAT(run.out, HasSubstr("model.output = \"yy\""));
  EXPECT_THAT(run.out, HasSubstr("\"wieght\" matches no weight"));
}

TEST(Check, SaysTheSameInJson) {
  TestModel model;
  model.input("x", {"N", 4}).initializer("w", wavy({4, 3})).output("y");
  model.node("MatMul", {"x", "w"}, {"y"});
  const ToolRun run = check(model, " --json");
  EXPECT_EQ(run.exit, 0);
  EXPECT_THAT(run.out, HasSubstr("{\"kind\":\"operator\",\"name\":\"MatMul\",\"nodes\":1,\"import\":\"yes\",\"gradient\":\"yes\",\"cpu\":\"generated\"}"));
  EXPECT_THAT(run.out, HasSubstr("{\"kind\":\"weight\",\"name\":\"w\",\"type\":\"f32[4,3]\",\"trained\":true,\"status\":\"yes\"}"));
  EXPECT_THAT(run.out, HasSubstr("{\"kind\":\"summary\",\"problems\":0,"));
}

}  // namespace
}  // namespace hone::test
