// Every error code is reached, here at least, and has a page in docs/errors whose example is what is really said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "base/text.h"
#include "formats/npy.h"
#include "ir/op.h"
#include "ir/ops/ops.h"
#include "passes/check_gradients.h"
#include "runtime/collective/thread_communicators.h"
#include "tests/errors/error_case.h"
#include "tests/frontend/test_model.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;

/// One way to meet an error code: a command that says it, or, where no command can be made to, the call that does.
struct Way {
  Code code;
  std::string command;
  std::function<void(const TempFolder&)> prepare = {};
  std::function<std::string()> call = {};
};

std::ostream& operator<<(std::ostream& stream, const Way& way) { return stream << (way.command.empty() ? "a call" : way.command); }

// --- What the commands work on ---

auto model(std::function<TestModel()> make) {
  return [make](const TempFolder& folder) {
    folder.write("model.onnx", make().proto.SerializeAsString());
    write_recipe(folder);
    folder.write("mse.toml", "[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\n");
  };
}

auto node(std::string op_type, std::vector<std::string> inputs, std::function<void(TestNode)> set) {
  return model([=] {
    TestModel made;
    made.input("x", {"N", 4}).output("y");
    set(made.node(op_type, inputs, {"y"}));
    return made;
  });
}

auto plan_and(std::function<void(const TempFolder&)> more) {
  return [more](const TempFolder& folder) {
    write_mlp_plan(folder);
    more(folder);
  };
}

auto file(const std::string& name, const std::string& content) {
  return plan_and([=](const TempFolder& folder) { folder.write(name, content); });
}

TestModel with_misspelled_operator() {
  TestModel made;
  made.input("x", {"N", 4}).output("y").node("Sotfmax", {"x"}, {"y"}).named("head/softmax");
  return made;
}

TestModel with_short_weight() {
  TestModel made = TestModel::of_node("Add", {"N", 4}, {f32({4}, {1, 2, 3, 4})});
  made.proto.mutable_graph()->mutable_initializer(0)->set_dims(0, 5);
  return made;
}

TestModel with_missing_value() {
  TestModel made;
  made.input("image", {"N", 4}).output("y").node("Relu", {"imgae"}, {"y"}).named("relu");
  return made;
}

TestModel with_inner_dimension() {
  TestModel made;
  made.input("x", {"N", 4}).output("y").initializer("fc.weight", wavy({5, 3})).node("MatMul", {"x", "fc.weight"}, {"y"}).named("fc/MatMul");
  return made;
}

TestModel of_float_and_integer() {
  TestModel made;
  made.input("x", {"N", 4}).output("y").initializer("b", i64({4}, {0, 1, 2, 3})).node("Add", {"x", "b"}, {"y"}).named("add");
  return made;
}

TestModel with_position() {
  TestModel made;
  made.input("x", {"N", 4}).output("y");
  made.node("ArgMax", {"x"}, {"i"}).set("axis", 1);
  made.node("Cast", {"i"}, {"y"}).set("to", 1);
  return made;
}

TestModel with_dynamic_axes() {
  TestModel made;
  made.input("x", {"N", 4}).input("axes", {"K"}, DType::kI64).output("y").node("Unsqueeze", {"x", "axes"}, {"y"}).named("view");
  return made;
}

TestModel that_ends_in_softmax() {
  TestModel made;
  made.input("x", {"N", 4}).output("p").initializer("w", wavy({4, 3}));
  made.node("MatMul", {"x", "w"}, {"h"});
  made.node("Softmax", {"h"}, {"p"}).named("softmax");
  return made;
}

/// A run folder whose only checkpoint has lost its weights.
void write_broken_run(const TempFolder& folder) {
  write_mlp_plan(folder);
  run_well(folder.path(), "hone-run train mlp.hone --train x=x.npy,y=y.npy --run-dir run --quiet");
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run"))
    if (entry.path().filename().string().starts_with("checkpoint-")) std::filesystem::remove(entry.path() / "model.safetensors");
}

// --- Calls ---

/// tanh with a formula that forgets the square.
constinit const OpDef kWrongTanh = {
    .name = "wrong_tanh",
    .doc = "y = tanh(x)",
    .inputs = {"x"},
    .infer = [](Infer& infer) { return std::vector<Type>{infer.type(0)}; },
    .grad = [](Grad& g) { g.flow(0, g.dy() * (1.0 - g.y())); },
    .scalar = [](const Args& x) { return expr::tanh(x[0]); },
};

std::string check_wrong_gradient() {
  Graph graph;
  Builder b(graph);
  const Val x = b.input(Role::kInput, "x", {DType::kF32, {Dim::symbol("N"), 4}}), w = b.input(Role::kWeight, "w", {DType::kF32, {4, 3}}, wavy({4, 3}));
  const Builder::Scope scope(b, {.node = "hidden"}, Part::kForward);
  b.output("y", kWrongTanh.build({op::matmul(x, w)}));
  Recipe recipe;
  recipe.loss.kind = "mse";
  recipe.optimizer.kind = "sgd";
  return Error(mismatches(check_gradients(graph, recipe, 2))).what();
}

/// One of two replicas fails, and the other one waits for it.
std::string exchange_with_one_that_fails() {
  ThreadCommunicators communicators(2);
  std::string said = "nothing";
  std::thread waits([&] {
    float value = 1;
    const ExchangedTensor tensor = {DType::kF32, 1, &value};
    try {
      communicators.of(0).all_reduce({&tensor, 1});
    } catch (const Error& error) {
      said = error.what();
    }
  });
  communicators.of(1).fail("its disk is full");
  waits.join();
  return said;
}

// --- The list ---

const std::string kCompile = "hone-compile model.onnx -o plan.hone", kTrain = "hone-run train mlp.hone --train x=x.npy,y=y.npy --out trained.onnx";

std::string train(const std::string& data) { return "hone-run train mlp.hone --out trained.onnx --train " + data; }

std::string header_alone(const std::string& header) { return std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header; }

const std::vector<Way>& ways() {
  static const std::vector<Way> list = {
      {Code::kUsage, "hone-run trian mlp.hone"},
      {Code::kDevice, kTrain + " --device cpuu", write_mlp_plan},
      {Code::kNotOnnx, kCompile, [](const TempFolder& folder) { folder.write("model.onnx", "a model that is only words\n"); }},
      {Code::kUnknownOp, kCompile, model(with_misspelled_operator)},
      {Code::kOpset, kCompile, model([] { return TestModel::of_node("Relu", {"N"}, {}, 99); })},
      {Code::kBadAttribute, kCompile, node("Transpose", {"x"}, [](TestNode made) { made.named("turn").set("perm", std::vector<std::int64_t>{0, 2}); })},
      {Code::kBadWeight, kCompile, model(with_short_weight)},
      {Code::kBadGraph, kCompile, model(with_missing_value)},
      {Code::kShape, kCompile, model(with_inner_dimension)},
      {Code::kType, kCompile, model(of_float_and_integer)},
      {Code::kNoGradient, kCompile + " --gradients-of y --wrt x", model(with_position)},
      {Code::kDynamic, kCompile, model(with_dynamic_axes)},
      {Code::kBadHir, "hone-opt wrong.hir", [](const TempFolder& folder) { folder.write("wrong.hir", "grpah main {}\n"); }},
      {Code::kInvalidGraph, "hone-opt twice.hir", [](const TempFolder& folder) { folder.write("twice.hir", "graph g(input %x: f32[2]) {\n  output \"y\" %x\n  output \"y\" %x\n}\n"); }},
      {Code::kGradientMismatch, "", {}, check_wrong_gradient},
      {Code::kNothingToTrain, kCompile + " -r mse.toml", model([] { return TestModel::of_node("Relu", {"N", 4}); })},
      {Code::kTooLarge, train("x=x.safetensors:x,y=y.npy"), file("x.safetensors", header_alone(R"({"x":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})"))},
      {Code::kModelWarning, kCompile + " -r train.toml", model(that_ends_in_softmax)},
      {Code::kRecipeSyntax, "hone-compile mlp.onnx -r twice.toml -o plan.hone", file("twice.toml", "[loss]\nkind = \"mse\"\nkind = \"mse\"\n")},
      {Code::kRecipeKey, "hone-compile mlp.onnx -r train.toml --set optimizer.lerning_rate=1 -o plan.hone", write_mlp},
      {Code::kRecipeValue, "hone-compile mlp.onnx -r train.toml --set data.batch_size=0 -o plan.hone", write_mlp},
      {Code::kRecipeModel, "hone-compile mlp.onnx -r train.toml --set model.freeze=[\"backbone.*\"] -o plan.hone", write_mlp},
      {Code::kDataFormat, train("x=x.npy,y=words.npy"), file("words.npy", "1 2 3")},
      {Code::kDataShape, train("x=wide.npy,y=y.npy"), plan_and([](const TempFolder& folder) { write_floats(folder, "wide.npy", {10, 5}); })},
      {Code::kDataType, train("x=x.npy,y=soft.npy"), plan_and([](const TempFolder& folder) { write_floats(folder, "soft.npy", {10}); })},
      {Code::kDataLength, train("x=x.npy,y=short.npy"), plan_and([](const TempFolder& folder) { write_classes(folder, "short.npy", 3, 3); })},
      {Code::kDataRange, train("x=x.npy,y=labels.npy"), plan_and([](const TempFolder& folder) { write_classes(folder, "labels.npy", 10, 4); })},
      {Code::kDataName, train("y=y.npy"), write_mlp_plan},
      {Code::kFileOpen, "hone-compile mpl.onnx -o plan.hone", write_mlp},
      {Code::kFileRead, "hone-compile mlp.onnx -r /proc/self/mem -o plan.hone", write_mlp},
      {Code::kFileWrite, "hone-compile mlp.onnx -o /dev/full", write_mlp},
      {Code::kCheckpoint, kTrain + " --run-dir run --resume --epochs 3", write_broken_run},
      {Code::kPlanFormat, "hone-run train mlp.onnx --train x=x.npy,y=y.npy", write_mlp},
      {Code::kPlanVersion, kTrain, plan_and([](const TempFolder& folder) {
         std::string bytes = folder.read("mlp.hone");
         bytes[8] = 77;  // behind the magic
         folder.write("mlp.hone", bytes);
       })},
      {Code::kPlanMismatch, kTrain + " --weights other.onnx", plan_and([](const TempFolder& folder) { folder.write("other.onnx", that_ends_in_softmax().proto.SerializeAsString()); })},
      {Code::kPlanEntry, kTrain, [](const TempFolder& folder) {
         write_mlp(folder);
         run_well(folder.path(), "hone-compile mlp.onnx -o mlp.hone");
       }},
      {Code::kNotFinite, kTrain + " --quiet --epochs 5 --set optimizer.learning_rate=1e30", write_mlp_plan},
      {Code::kMemory, kTrain + " --memory-limit 1KiB", write_mlp_plan},
      {Code::kPeer, "", {}, exchange_with_one_that_fails},
      {Code::kDeviceLost, "HONE_SIM=lost_after=5 " + kTrain + " --device sim",
       [](const TempFolder& folder) {
         write_mlp(folder);
         run_well(folder.path(), "hone-compile mlp.onnx -r train.toml --target sim -o mlp.hone");
       }},
  };
  return list;
}

struct NamedCode {
  Code code;
  const char* name;
};
constexpr NamedCode kCodes[] = {
#define HONE_CODE(name, number) {Code::name, #name},
    HONE_ERROR_CODES(HONE_CODE)
#undef HONE_CODE
};

std::string page_of(Code code) {
  std::ostringstream text;
  text << std::ifstream(std::string(HONE_SOURCE_DIR) + "/docs/errors/" + to_string(code) + ".md").rdbuf();
  return text.str();
}

/// The first line of the page's example.
std::string example_of(const std::string& page) {
  constexpr std::string_view kBegin = "```text\n";
  const std::size_t at = page.find(kBegin);
  if (at == std::string::npos) return "there is no example";
  return page.substr(at + kBegin.size(), page.find('\n', at + kBegin.size()) - at - kBegin.size());
}

class ErrorCode : public ::testing::TestWithParam<Way> {};

TEST_P(ErrorCode, IsReachedAndSaysWhatItsPageShows) {
  const Way& way = GetParam();
  const TempFolder folder;
  if (way.prepare) way.prepare(folder);
  const std::string said = way.call ? way.call() : run_tool(folder.path(), way.command).err;
  EXPECT_THAT(said, HasSubstr("[" + to_string(way.code) + "]"));
  EXPECT_THAT(said, HasSubstr(example_of(page_of(way.code)))) << "docs/errors/" << to_string(way.code) << ".md has another example";
}

INSTANTIATE_TEST_SUITE_P(All, ErrorCode, ::testing::ValuesIn(ways()), [](const auto& each) { return to_string(each.param.code).substr(3); });

TEST(ErrorCodes, AreAllInTheListAbove) {
  for (const auto& [code, name] : kCodes)
    EXPECT_TRUE(std::ranges::any_of(ways(), [&](const Way& way) { return way.code == code; })) << name << " is reached by nothing: add a way to meet it, or delete it from base/codes.h";
}

TEST(ErrorCodes, HaveOnePageEach) {
  std::set<std::string> pages, codes;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(HONE_SOURCE_DIR) + "/docs/errors"))
    if (entry.path().extension() == ".md" and entry.path().filename() != "README.md") pages.insert(entry.path().stem());
  for (const auto& [code, name] : kCodes) {
    codes.insert(to_string(code));
    const std::string page = page_of(code);
    EXPECT_TRUE(page.starts_with("# " + to_string(code) + ": ")) << name;
    for (const char* section : {"\n## Usual causes\n", "\n## Example\n", "\n## What to do\n"}) EXPECT_THAT(page, HasSubstr(section)) << name;
  }
  EXPECT_EQ(pages, codes) << "docs/errors and base/codes.h have the same codes";
}

TEST(Explain, PrintsThePageOfACode) {
  const TempFolder folder;
  for (const char* tool : {"hone-compile", "hone-run", "hone-dump", "hone-opt"})
    for (const char* flag : {" --explain HN-0107", " --explain=hn-107", " --explain 107"}) EXPECT_EQ(run_well(folder.path(), tool + std::string(flag)).out, page_of(Code::kShape)) << tool << flag;
  const std::string two = run_well(folder.path(), "hone-compile --explain HN-0107,HN-0601").out;
  EXPECT_EQ(two, page_of(Code::kShape) + "\n" + page_of(Code::kNotFinite));
}

TEST(Explain, ListsAllCodes) {
  const TempFolder folder;
  const std::string list = run_well(folder.path(), "hone-run --explain codes").out;
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(list, '\n')), std::size(kCodes));
  EXPECT_THAT(list, HasSubstr("HN-0601  a loss that is not finite\n"));
}

TEST(Explain, IsNamedBehindAnError) {
  const TempFolder folder;
  const ToolRun run = run_tool(folder.path(), "hone-compile no.onnx -o plan.hone");
  EXPECT_THAT(run.err, ::testing::EndsWith("\n  more: hone-compile --explain HN-0401\n"));
  EXPECT_EQ(run_well(folder.path(), "hone-compile --explain HN-0401").out, page_of(Code::kFileOpen));
}

const ErrorCase kWrong[] = {
    {"UnknownCode", "hone-compile --explain HN-0170", 2, {"HN-0001", "\"HN-0170\"", "did you mean \"HN-0107\"?", "hone-compile --explain codes"}},
    {"NoCode", "hone-run --explain", 2, {"--explain \"\"", "hone-run --explain codes"}},
    {"Words", "hone-dump --explain everything", 2, {"\"everything\"", "no such error code"}},
};
HONE_ERROR_CASES(ExplainErrors, kWrong);

}  // namespace
}  // namespace hone::test
