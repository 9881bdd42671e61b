// Plans that are none, damaged, from another version, or asked for what they do not have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/philox.h"
#include "runtime/plan/plan.h"
#include "tests/errors/error_case.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;

const std::string kTrain = "hone-run train mlp.hone --train x=x.npy,y=y.npy --out trained.onnx";

/// The plan of write_mlp_plan() with something done to its bytes.
auto damaged(std::function<void(std::string&)> damage) {
  return [damage](const TempFolder& folder) {
    write_mlp_plan(folder);
    std::string bytes = folder.read("mlp.hone");
    damage(bytes);
    folder.write("mlp.hone", bytes);
  };
}

void predict_only(const TempFolder& folder) {
  write_mlp(folder);
  run_well(folder.path(), "hone-compile mlp.onnx -o mlp.hone");
}

/// mlp.hone, and conv.onnx, whose weights have other names.
void with_another_model(const TempFolder& folder) {
  write_conv_net(folder);
  write_mlp_plan(folder);
}

/// The plan of write_mlp_plan() with something done to what it says.
auto made_wrongly(std::function<void(plan::Plan&)> change) {
  return [change](const TempFolder& folder) {
    write_mlp_plan(folder);
    plan::Plan plan = plan::load(folder / "mlp.hone");
    change(plan);
    plan::save(plan, folder / "mlp.hone");
  };
}

const ErrorCase kCases[] = {
    {"TwoEntriesOfOneName", kTrain, 10, {"HN-0501", "in mlp.hone", "two entries are called \"predict\"", "compile the model again"}, made_wrongly([](plan::Plan& plan) {
       plan.programs[0].entries.push_back(*plan.programs[0].find(plan::kPredict));
     })},
    {"StepThatReadsNoBuffer", kTrain, 10, {"HN-0501", "in mlp.hone", "entry \"train_step\"", "buffer 99999"}, made_wrongly([](plan::Plan& plan) {
       for (plan::Entry& entry : plan.programs[0].entries)
         for (plan::Step& step : entry.steps)
           if (auto* kernel = std::get_if<plan::KernelStep>(&step.what); kernel != nullptr and entry.name == plan::kTrainStep) kernel->buffers[0] = 99'999;
     })},
    {"WeightOfAnotherNameThanInItsModel", kTrain, 10, {"HN-0501", "the model in the plan has no tensor \"renamed\"", "compile the model again"}, made_wrongly([](plan::Plan& plan) {
       plan.programs[0].persistents[0].name = "renamed";
     })},
    {"LibraryCallOfAnotherType", "hone-run predict mlp.hone --data x=x.npy --out out.npz", 10, {"HN-0501", "cannot be called so", "operand b is", "compile the model again"}, made_wrongly([](plan::Plan& plan) {
       for (plan::Entry& entry : plan.programs[0].entries) {
         const auto x = std::ranges::find(entry.buffers, plan::Buffer::Storage::kFeed, &plan::Buffer::storage) - entry.buffers.begin();
         const auto arena = std::ranges::find(entry.buffers, plan::Buffer::Storage::kArena, &plan::Buffer::storage) - entry.buffers.begin();
         entry.buffers[static_cast<std::size_t>(arena)].dtype = DType::kI64;
         entry.steps[0].what = plan::LibraryStep{"onednn.matmul", {}, {x, arena}, {}};
       }
     })},
    {"ShownWithoutAProgram", "hone-dump mlp.hone --as onnx", 10, {"HN-0501", "mlp.hone has no program"}, made_wrongly([](plan::Plan& plan) { plan.programs.clear(); })},
    {"StoredRecipeOfBrackets", kTrain, 5, {"HN-0201", "the stored recipe is no JSON"}, made_wrongly([](plan::Plan& plan) {
       plan.recipe_json.replace(plan.recipe_json.find("\"batch_size\": 4"), 15, "\"batch_size\": " + std::string(1'000'000, '[') + std::string(1'000'000, ']'));
     })},
    {"StoredRecipeOfAbsurdNumbers", kTrain, 5, {"HN-0203", "data.batch_size is -3"}, made_wrongly([](plan::Plan& plan) {
       plan.recipe_json.replace(plan.recipe_json.find("\"batch_size\": 4"), 15, "\"batch_size\": -3");
     })},
    {"MissingFile", "hone-run train mpl.hone --train x=x.npy,y=y.npy --out trained.onnx", 7, {"HN-0401", "mpl.hone", "mlp.hone"}, write_mlp_plan},
    {"ModelInsteadOfPlan",
     "hone-run train mlp.onnx --train x=x.npy,y=y.npy --out trained.onnx",
     10,
     {"HN-0501", "mlp.onnx is not a plan", "hone-compile"},
     write_mlp},
    {"EmptyFile", kTrain, 10, {"HN-0501", "mlp.hone is not a plan"}, damaged([](std::string& bytes) { bytes.clear(); })},
    {"TruncatedInTheHeader", kTrain, 10, {"HN-0501", "mlp.hone", "copy it again"}, damaged([](std::string& bytes) { bytes.resize(40); })},
    {"Truncated", kTrain, 10, {"HN-0501", "mlp.hone: the file has", "copy it again"}, damaged([](std::string& bytes) { bytes.resize(bytes.size() / 2); })},
    {"OneByteMissing", kTrain, 10, {"HN-0501", "mlp.hone"}, damaged([](std::string& bytes) { bytes.pop_back(); })},
    {"OneByteMore", kTrain, 10, {"HN-0501", "mlp.hone"}, damaged([](std::string& bytes) { bytes.push_back('x'); })},
    {"FlippedByteInTheTable", kTrain, 10, {"HN-0501", "does not match its hash"}, damaged([](std::string& bytes) { bytes[80] ^= 1; })},
    {"FlippedByteInTheMiddle", kTrain, 10, {"HN-0501", "does not match its hash"}, damaged([](std::string& bytes) { bytes[bytes.size() / 2] ^= 1; })},
    {"AnotherVersion", kTrain, 10, {"HN-0502", "plan format 77", "compile the model again"}, damaged([](std::string& bytes) {
       const std::uint32_t version = 77;
       std::memcpy(bytes.data() + 8, &version, sizeof(version));
     })},
    {"TrainingAPlanWithoutRecipe", kTrain, 10, {"HN-0504", "compiled without a recipe", "hone-compile MODEL.onnx -r train.toml"}, predict_only},
    {"WeightsOfAnotherModel",
     "hone-run predict mlp.hone --weights conv.onnx --data x=x.npy --out out.npz",
     10,
     {"HN-0503", "the weights in \"conv.onnx\" do not fit the plan", "\"dense_1/kernel\" is missing there", "--out"},
     with_another_model},
    {"WeightsThatAreNoModel",
     "hone-run predict mlp.hone --weights x.npy --data x=x.npy --out out.npz",
     3,
     {"HN-0101", "x.npy is not an ONNX file"},
     write_mlp_plan},
    {"DeviceThatIsNotHere", kTrain + " --device cuda", 2, {"HN-0002", "\"cuda\"", "--device cpu"}, write_mlp_plan},
    {"DeviceThatIsAGpu", kTrain + " --device gpu", 2, {"HN-0002", "\"gpu\"", "a GPU is \"cuda\""}, write_mlp_plan},
    {"DeviceThatNobodyKnows", kTrain + " --device cpuu", 2, {"HN-0002", "\"cpuu\""}, write_mlp_plan},
    {"DumpOfADamagedPlan", "hone-dump mlp.hone", 10, {"HN-0501"}, damaged([](std::string& bytes) { bytes[bytes.size() - 1] ^= 1; })},
    {"StageThatThePlanHasNot", "hone-dump mlp.hone --stage traning", 2, {"HN-0001", "\"traning\"", "it has", "\"train_step\""}, write_mlp_plan},
};

HONE_ERROR_CASES(PlanErrors, kCases);

/// Any flipped bit anywhere is found before anything of the plan is used.
TEST(FlippedBits, AreAllFound) {
  const TempFolder folder;
  write_mlp_plan(folder);
  const std::string whole = folder.read("mlp.hone");
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto [where, which] = philox_uniform(3, i, 0);
    std::string bytes = whole;
    const auto at = static_cast<std::size_t>(where * static_cast<double>(bytes.size()));
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << static_cast<int>(which * 8)));
    folder.write("mlp.hone", bytes);
    const ToolRun run = run_tool(folder.path(), "hone-run predict mlp.hone --data x=x.npy --out out.npz");
    EXPECT_EQ(run.exit, 10) << "byte " << at << "\n" << run.err;
    EXPECT_THAT(run.err, HasSubstr("mlp.hone"));
  }
}

}  // namespace
}  // namespace hone::test
