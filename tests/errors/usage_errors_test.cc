// Command lines that say something else than was meant.
#include <gtest/gtest.h>

#include "tests/errors/error_case.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

const std::string kTrain = "hone-run train mlp.hone --train x=x.npy,y=y.npy --out trained.onnx";

constexpr const char* kSmallestGraph = "graph g(input %x: f32[2]) {\n  %y = tanh(%x)\n  output \"y\" %y\n}\n";

/// Three steps, and their checkpoint.
void write_run(const TempFolder& folder) {
  write_mlp_plan(folder);
  run_well(folder.path(), "hone-run train mlp.hone --train x=x.npy,y=y.npy --run-dir run --steps 3");
}

const ErrorCase kCases[] = {
    {"NoCommand", "hone-run", 2, {"HN-0001", "train, eval, predict, call, bench, devices"}},
    {"WrongValueInTheEnvironment", "HONE_EPOCHS=abc " + kTrain, 2, {"--epochs \"abc\": expected a number", "the environment says so: HONE_EPOCHS=abc"}, write_mlp_plan},
    {"WrongValueBesideTheEnvironment", "HONE_EPOCHS=3 " + kTrain + " --epochs abc", 2, {"--epochs \"abc\": expected a number", "hone-run train --help"}, write_mlp_plan},
    {"MisspelledCommand", "hone-run trian mlp.hone", 2, {"\"trian\"", "did you mean \"train\"?"}},
    {"NoPlan", "hone-run train", 2, {"PLAN is required", "hone-run train --help"}},
    {"NoData", "hone-run train mlp.hone", 2, {"--train is required"}, write_mlp_plan},
    {"MisspelledFlag", kTrain + " --epoch 3", 2, {"no flag \"--epoch\"", "did you mean \"--epochs\"?"}, write_mlp_plan},
    {"FlagOfAnotherCommand",
     "hone-run predict mlp.hone --data x=x.npy --out out.npz --epochs 3",
     2,
     {"no flag \"--epochs\"", "hone-run predict"},
     write_mlp_plan},
    {"KerasNameOfACommand", "hone-run fit mlp.hone", 2, {"cannot \"fit\"", "it is hone-run train"}},
    {"KerasNameOfAFlag", kTrain + " --batch_size 32", 2, {"no flag \"--batch_size\"", "did you mean --batch B? (samples of a step"}, write_mlp_plan},
    {"KerasNameOfAShareOfTheData", kTrain + " --validation_split 0.2", 2, {"no flag \"--validation_split\"", "did you mean --valid NAME=FILE", "rows of the same files will do: x=X.npy[9000:]"}, write_mlp_plan},
    {"KerasNameOfTheData", "hone-run train mlp.hone --x x.npy --y y.npy", 2, {"no flag \"--x\"", "--train NAME=FILE"}, write_mlp_plan},
    {"TrainingFlagOfAnEvaluation", "hone-run eval mlp.hone --train x=x.npy,y=y.npy", 2, {"no flag \"--train\"", "--data NAME=FILE"}, write_mlp_plan},
    {"KeyOfTheRecipeAsAFlag", kTrain + " --learning-rate 0.1", 2, {"no flag \"--learning-rate\"", "--set optimizer.learning_rate=VALUE"}, write_mlp_plan},
    {"OtherNameOfAKeyAsAFlag", kTrain + " --lr 0.1", 2, {"no flag \"--lr\"", "--set KEY=VALUE", "optimizer.learning_rate"}, write_mlp_plan},
    {"LossAsAFlag", "hone-compile mlp.onnx --loss mse -o plan.hone", 2, {"no flag \"--loss\"", "--set loss.kind=VALUE"}, write_mlp},
    {"RecipeWithoutItsFlag", "hone-compile mlp.onnx train.toml -o plan.hone", 2, {"\"train.toml\"", "did you mean --recipe RECIPE.toml"}, write_mlp},
    {"ModelInPlaceOfTheRecipe", "hone-compile train.toml -r mlp.onnx -o plan.hone", 2, {"-r \"mlp.onnx\"", "a recipe is a .toml file, and this is a model", "the model stands alone"}, write_mlp},
    {"DataWithoutTheirFlag", "hone-run eval mlp.hone x=x.npy,y=y.npy", 2, {"one argument too many", "did you mean --data NAME=FILE"}, write_mlp_plan},
    {"OutputThatIsMissing", "hone-run predict mlp.hone --data x=x.npy", 2, {"--out is required", "--out Y.np"}, write_mlp_plan},
    {"FormAsAFlag", "hone-dump mlp.hone --html", 2, {"no flag \"--html\"", "did you mean --as FORM?"}, write_mlp_plan},
    {"OutputOfWhatIsPrinted", "hone-dump mlp.hone --as svg -o plan.svg", 2, {"no flag \"-o\"", "standard output", "> FILE"}, write_mlp_plan},
    {"TrainedModelInPlaceOfItsData", "hone-run train mlp.hone --train x=x.npy,y=y.npy --out ./x.npy", 2, {"--out \"./x.npy\"", "which this command reads, and it would be lost"}, write_mlp_plan},
    {"TrainedModelInPlaceOfItsPlan", "hone-run train mlp.hone --train x=x.npy,y=y.npy --out mlp.hone", 2, {"--out \"mlp.hone\"", "it would be lost"}, write_mlp_plan},
    {"TrainedModelAmongItsData", "hone-run train mlp.hone --train x=x*.npy,y=y.npy --out x2.npy", 2, {"--out \"x2.npy\"", "it would be lost"}, write_mlp_plan},
    {"TraceInPlaceOfTheData", kTrain + " --trace y.npy", 2, {"--trace \"y.npy\"", "it would be lost"}, write_mlp_plan},
    {"PredictionsInPlaceOfTheData", "hone-run predict mlp.hone --data x=x.npy --out x.npy", 2, {"--out \"x.npy\"", "it would be lost"}, write_mlp_plan},
    {"PlanInPlaceOfItsModel", "hone-compile mlp.onnx -r train.toml -o mlp.onnx", 2, {"-o \"mlp.onnx\"", "it would be lost"}, write_mlp},
    {"PlanInPlaceOfTheRecipe", "hone-compile mlp.onnx -o train.toml", 2, {"-o \"train.toml\"", "a plan's name ends in .hone"}, write_mlp},
    {"TrainedModelAsKerasHasIt", "hone-run train mlp.hone --train x=x.npy,y=y.npy --out trained.keras", 2, {"--out \"trained.keras\"", "as .onnx, or its weights alone as .safetensors"}, write_mlp_plan},
    {"NodeOfAPartOfItsName", "hone-compile mlp.onnx -r train.toml --why ens", 2, {"no such node", "with it in their names", "\"dense\""}, write_mlp},
    {"TargetOfAnotherName", "hone-compile mlp.onnx -r train.toml --target gpu -o plan.hone", 2, {"\"gpu\"", "\"cuda\""}, write_mlp},
    {"MoreReplicasThanDevices", kTrain + " --replicas 2", 2, {"--replicas 2", "there is 1 device", "--virtual 2 makes logical devices", "hone-run devices"}, write_mlp_plan},
    {"MoreReplicasThanLogicalDevices", kTrain + " --virtual 3 --replicas 4", 2, {"--replicas 4", "there are 3 devices", "--virtual 4"}, write_mlp_plan},
    {"NegativeReplicas", kTrain + " --virtual -2", 2, {"--virtual", "at least 1"}, write_mlp_plan},
    {"BatchSmallerThanTheReplicas", kTrain + " --virtual 8 --global-batch --batch 4", 2, {"global batch of 4", "8 replicas", "larger --batch or fewer replicas"}, write_mlp_plan},
    {"FewerShardsThanReplicas", kTrain + " --virtual 4 --shards 2", 2, {"2 shards and 4 replicas", "take 4 shards"}, write_mlp_plan},
    {"ShardsWhoseSumsAreNoPartOfAll", kTrain + " --virtual 6 --shards 9", 2, {"9 shards and 6 replicas", "take 8 shards"}, write_mlp_plan},
    {"TimeoutThatIsNone", kTrain + " --collective-timeout soon", 2, {"--collective-timeout \"soon\"", "60s or 500ms"}, write_mlp_plan},
    {"ResumeWithoutARunFolder", kTrain + " --resume", 2, {"--resume", "--run-dir, which is not given", "add --run-dir DIR"}, write_mlp_plan},
    {"CheckpointsWithoutARunFolder", kTrain + " --save-steps 5", 2, {"--save-steps", "add --run-dir DIR"}, write_mlp_plan},
    {"NoCheckpointToKeep", kTrain + " --run-dir run --keep 0", 2, {"--keep 0", "leave it out to keep three"}, write_mlp_plan},
    {"ThreadsBeyondAnyMachine", kTrain + " --threads 100000", 2, {"100000 threads are asked for", "1 to 1024; 0 takes as many as there are cores"}, write_mlp_plan},
    {"ThreadsBeyondAnInteger", kTrain + " --threads 4294967297", 2, {"threads are asked for", "1 to 1024"}, write_mlp_plan},
    {"ValueOfAVariableThatIsNotSet", "hone-run eval mlp.hone --data x=x.npy,y=y.npy --weights ''", 2, {"--weights is given nothing", "leave it out, or say --weights FILE", "a variable of the shell"}, write_mlp_plan},
    {"TwoSourcesOfWeights", kTrain + " --run-dir run --resume --weights mlp.onnx", 2, {"--resume and --weights", "leave one of them out"}, write_mlp_plan},
    {"DryRunThatGoesOn", kTrain + " --run-dir run --resume --dry-run", 2, {"--dry-run", "leave one of them out"}, write_mlp_plan},
    {"NegativeTime", kTrain + " --max-time -1", 5, {"train.max_seconds is -1"}, write_mlp_plan},
    {"NegativeLimit", kTrain + " --limit -1", 2, {"--limit", "0 or more"}, write_mlp_plan},
    {"TextForANumber", kTrain + " --epochs many", 2, {"--epochs", "many"}, write_mlp_plan},
    {"FlagWithoutItsValue", kTrain + " --seed", 2, {"--seed"}, write_mlp_plan},
    {"NegativeSteps", kTrain + " --steps -1", 2, {"--steps", "0 or more"}, write_mlp_plan},
    {"NoEpochs", kTrain + " --epochs 0", 5, {"train.epochs is 0", "in --epochs", "at least 1"}, write_mlp_plan},
    {"BatchOfNothing", kTrain + " --batch 0", 5, {"data.batch_size is 0", "in --batch", "at least 1"}, write_mlp_plan},
    {"BatchBeyondAllNumbers", kTrain + " --batch 9223372036854775807", 5, {"data.batch_size is", "at most 1000000000"}, write_mlp_plan},
    {"OneArgumentTooMany", "hone-run eval mlp.hone other.hone --data x=x.npy,y=y.npy", 2, {"\"other.hone\"", "one argument too many"}, write_mlp_plan},
    {"DataWithoutAName", "hone-run train mlp.hone --train x.npy --out trained.onnx", 2, {"expected NAME=FILE", "--train x=images.npy"}, write_mlp_plan},
    {"PredictionsIntoAnUnknownKind", "hone-run predict mlp.hone --data x=x.npy --out out.csv", 2, {"out.csv", ".npy or .npz"}, write_mlp_plan},
    {"NothingToDo", "hone-compile mlp.onnx", 2, {"nothing to do", "-o PLAN.hone"}, write_mlp},
    {"NoModel", "hone-compile", 2, {"MODEL is required", "hone-compile --help"}},
    {"MisspelledStage", "hone-compile mlp.onnx --emit kernles", 2, {"\"kernles\"", "did you mean \"kernels\"?", "\"schedule\""}, write_mlp},
    {"StageBehindPassesWithoutPasses", "hone-compile mlp.onnx --emit hir", 2, {"\"hir\"", "behind --passes also \"hir\""}, write_mlp},
    {"SizeOfNothingToTime", "hone-run bench mlp.hone --dim N=0", 2, {"--dim \"N=0\"", "expected NAME=NUMBER"}, write_mlp_plan},
    {"TableThatIsNone", "hone-compile mlp.onnx -r train.toml -o plan.hone --set data.scale={x}", 2, {"--set \"data.scale\": \"x\" is no NAME=VALUE", "--set 'data.scale={NAME=0.5}'"}, write_mlp},
    {"MisspelledPass", "hone-compile mlp.onnx --emit hir --passes simplfy,cse", 2, {"\"simplfy\"", "did you mean \"simplify\"?"}, write_mlp},
    {"MisspelledPassOfAPlan", "hone-compile mlp.onnx -o plan.hone --passes fold,fus", 2, {"\"fus\"", "did you mean \"fuse\"?", "\"library\""}, write_mlp},
    {"UnknownTarget", "hone-compile mlp.onnx -r train.toml --target tpu -o plan.hone", 2, {"\"tpu\"", "cpu"}, write_mlp},
    {"UnknownLevel", "hone-compile mlp.onnx -r train.toml --levels v3 -o plan.hone", 2, {"\"v3\"", "x86-64-v3"}, write_mlp},
    {"DimWithoutANumber", "hone-compile mlp.onnx -o plan.hone --dim N", 2, {"--dim", "expected NAME=NUMBER"}, write_mlp},
    {"MisspelledFlagOfTheCompiler", "hone-compile mlp.onnx -o plan.hone --recip train.toml", 2, {"\"--recip\"", "did you mean \"--recipe\"?"}, write_mlp},
    {"RunThatDoesNotFitIntoItsLimit", kTrain + " --memory-limit 1KiB", 6, {"a training step of batch 4 takes", "of weights and states", "there is --memory-limit 1KiB", "not even one sample fits", "hone-compile --memory-limit"}, write_mlp_plan},
    {"NoBatchThatFits", kTrain + " --batch auto --memory-limit 1KiB", 6, {"a training step of batch 1 takes", "there is --memory-limit 1KiB"}, write_mlp_plan},
    {"RunLimitThatIsNone", kTrain + " --memory-limit much", 2, {"--memory-limit \"much\"", "--memory-limit 4GiB"}, write_mlp_plan},
    {"LargestBatchOfAnEvaluation", "hone-run eval mlp.hone --data x=x.npy,y=y.npy --batch auto", 5, {"data.batch_size is a whole number"}, write_mlp_plan},
    {"MemoryLimitThatIsNone", "hone-compile mlp.onnx -r train.toml -o plan.hone --memory-limit much", 2, {"--memory-limit \"much\"", "--memory-limit 2GiB"}, write_mlp},
    {"MemoryLimitBelowTheWeights", "hone-compile mlp.onnx -r train.toml -o plan.hone --memory-limit 100", 6, {"--memory-limit", "weights, optimizer states and constants alone take", "frozen weights"}, write_mlp},
    {"GradientsOfNothing", "hone-compile mlp.onnx --wrt x -o plan.hone", 2, {"--gradients-of and --wrt", "--gradients-of loss --wrt x"}, write_mlp},
    {"GradientsOfAnUnknownOutput", "hone-compile mlp.onnx --gradients-of loss --wrt x -o plan.hone", 2, {"--gradients-of \"loss\"", "no such output", "\"logits\"", "loss.kind"}, write_mlp},
    {"GradientsByAnUnknownWeight", "hone-compile mlp.onnx -r train.toml --gradients-of loss --wrt dense/kernl -o plan.hone", 2, {"--wrt \"dense/kernl\"", "did you mean \"dense/kernel\"?"}, write_mlp},
    {"GradientsByIntegers", "hone-compile ids.onnx -r train.toml --gradients-of loss --wrt ids -o plan.hone", 2, {"--wrt \"ids\"", "only floats have gradients"}, write_ids_plan},
    {"WordThatNothingTakes", "hone-compile mlp.onnx extra -o plan.hone", 2, {"hone-compile: \"extra\" is one argument too many", "see hone-compile --help"}, write_mlp},
    {"StageOverTheModel", "hone-compile mlp.onnx --emit imported:mlp.onnx", 2, {"--emit \"mlp.onnx\": that is a file which this command reads"}, write_mlp},
    {"StageOverThePlan", "hone-compile mlp.onnx --emit imported:plan.hone -o plan.hone", 2, {"--emit \"plan.hone\": that is also what -o writes"}, write_mlp},
    {"PassesOverTheirGraph", "hone-opt a.hir --passes dce -o a.hir", 2, {"-o \"a.hir\": that is a file which this command reads"}, [](const TempFolder& f) { f.write("a.hir", kSmallestGraph); }},
    {"TwoPlacesForOneModel", kTrain + " --out other.onnx", 2, {"--out is given 2 times, and takes one value"}, write_mlp_plan},
    {"StepsThatAreNoNumber", "hone-run train mlp.hone --train x=x.npy,y=y.npy --out t.onnx --steps many", 2, {"--steps \"many\": expected a number"}, write_mlp_plan},
    {"LinesAndAFileInOnePlace", "hone-run train mlp.hone --train x=x.npy,y=y.npy --json --out -", 2, {"--json and --out -: both go to standard output"}, write_mlp_plan},
    {"TraceOverTheTrainedModel", "hone-run train mlp.hone --train x=x.npy,y=y.npy --out t.onnx --trace t.onnx", 2, {"--trace \"t.onnx\": that is also what --out writes"}, write_mlp_plan},
    {"BatchOfBatches", kTrain + " --pre-batched --batch 4", 2, {"--pre-batched data are batches already"}, write_mlp_plan},
    {"DumpOfASizeThatIsNone", "hone-dump mlp.hone --as json --dim T=5", 2, {"--dim \"T\": there is no such size", "its sizes are N"}, write_mlp_plan},
    {"BenchOfASizeThatIsNone", "hone-run bench mlp.hone --dim T=5", 2, {"--dim \"T\": there is no such size", "its sizes are N"}, write_mlp_plan},
    {"BenchOfLessThanNoTime", "hone-run bench mlp.hone --seconds -1", 2, {"--seconds is how long to time", "0 or more"}, write_mlp_plan},
    {"HeadOfNoClasses", "hone-compile mlp.onnx -r train.toml --new-head classes=0 -o plan.hone", 2, {"--new-head \"classes=0\"", "--new-head classes=5"}, write_mlp},
    {"TrainedModelOverTheWeights", "hone-run train mlp.hone --train x=x.npy,y=y.npy --weights mlp.onnx --out ./mlp.onnx", 2, {"--out \"./mlp.onnx\": that is a file which this command reads"}, write_mlp_plan},
    {"TraceOverACheckpoint", kTrain + " --weights run/checkpoint-000003 --trace run/checkpoint-000003/state.json", 2, {"--trace \"run/checkpoint-000003/state.json\": that is a file which this command reads"}, write_run},
    {"TrainedModelIntoACheckpoint", "hone-run train mlp.hone --train x=x.npy,y=y.npy --out run/checkpoint-000003/model.safetensors", 2, {"that is within a checkpoint", "another folder"}, write_run},
    {"TrainedModelOverTheRunsLog", "hone-run train mlp.hone --train x=x.npy,y=y.npy --run-dir new --out ./new/metrics.jsonl", 2, {"--out \"./new/metrics.jsonl\": that is also what --run-dir writes"}, write_mlp_plan},
    {"EpochsBeyondAllNumbers", kTrain + " --epochs 99999999999999999999", 2, {"--epochs", "\"99999999999999999999\" is beyond all numbers that are taken"}, write_mlp_plan},
    {"StepsBelowAllNumbers", kTrain + " --steps -99999999999999999999", 2, {"--steps", "is beyond all numbers that are taken"}, write_mlp_plan},
    {"HalfAnEpoch", kTrain + " --epochs 1.5", 2, {"--epochs", "a whole number is expected, and \"1.5\" was found"}, write_mlp_plan},
    {"ShardsWithoutEnd", kTrain + " --shards 1048576", 2, {"1048576 shards", "at most 65536 shards", "--shards 64"}, write_mlp_plan},
    {"HeadWithoutItsWord", "hone-compile mlp.onnx -r train.toml --new-head 5 -o plan.hone", 2, {"--new-head \"5\": expected classes=C", "--new-head classes=5"}, write_mlp},
    {"DumpInAnUnknownForm", "hone-dump mlp.onnx --as pdf", 2, {"\"pdf\"", "dot"}, write_mlp},
    {"OptimizerPassThatIsNone", "hone-opt a.hir --passes fuze", 2, {"\"fuze\""}, [](const TempFolder& f) { f.write("a.hir", kSmallestGraph); }},
};

HONE_ERROR_CASES(UsageErrors, kCases);

}  // namespace
}  // namespace hone::test
