// Recipes that do not parse, say something unknown, or do not fit the model.
#include <gtest/gtest.h>

#include "tests/errors/error_case.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

const std::string kCompile = "hone-compile mlp.onnx -r train.toml -o plan.hone";

/// mlp.onnx and a recipe of this text.
auto recipe(std::string text) {
  return [text](const TempFolder& folder) {
    write_mlp(folder);
    folder.write("train.toml", text);
  };
}

constexpr const char* kGood = "[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"sgd\"\n";
auto good_and(const std::string& more) { return recipe(kGood + more); }

/// The good recipe and --set.
std::string set(const std::string& assignment) { return kCompile + " --set " + assignment; }

const ErrorCase kCases[] = {
    {"MissingFile", "hone-compile mlp.onnx -r tarin.toml -o plan.hone", 7, {"HN-0401", "tarin.toml", "train.toml"}, write_mlp},
    {"SyntaxErrorWithItsLine", kCompile, 5, {"HN-0201", "not TOML", "in train.toml:2"}, recipe("[loss]\nkind = \"mse\n")},
    {"KeyTwice", kCompile, 5, {"HN-0201", "train.toml:3"}, recipe("[loss]\nkind = \"mse\"\nkind = \"mse\"\n")},
    {"UnknownKeyWithTheNearest",
     kCompile,
     5,
     {"HN-0202", "\"optimizer.lerning_rate\"", "train.toml:5", "did you mean \"optimizer.learning_rate\"?"},
     good_and("lerning_rate = 0.1\n")},
    {"KeyOfAnotherSection", kCompile, 5, {"HN-0202", "\"train.batch_size\"", "\"data.batch_size\""}, good_and("[train]\nbatch_size = 3\n")},
    {"KeyOutsideOfSections", kCompile, 5, {"HN-0202", "\"epochs\"", "train.toml:1", "[train]"}, recipe(std::string("epochs = 3\n") + kGood)},
    {"UnknownSection", kCompile, 5, {"HN-0202", "\"optimiser\"", "did you mean \"optimizer\"?"}, recipe("[optimiser]\nkind = \"sgd\"\n")},
    {"SeveralProblemsAtOnce",
     kCompile,
     5,
     {"\"optimizer.rate\"", "train.epochs is a whole number", "data.batch_size"},
     good_and("rate = 1\n[train]\nepochs = \"ten\"\n[data]\nbatch_size = 0\n")},
    {"TextForANumber", kCompile, 5, {"HN-0203", "optimizer.learning_rate is a number", "\"fast\"", "train.toml:5"}, good_and("learning_rate = \"fast\"\n")},
    {"FractionForAWholeNumber", kCompile, 5, {"HN-0203", "train.epochs is a whole number", "2.5"}, good_and("[train]\nepochs = 2.5\n")},
    {"NumberOutOfRange", kCompile, 5, {"HN-0203", "data.batch_size is 0", "at least 1"}, good_and("[data]\nbatch_size = 0\n")},
    {"LearningRateThatIsNoNumber", set("optimizer.learning_rate=nan"), 5, {"HN-0203", "optimizer.learning_rate", "nan"}, recipe(kGood)},
    {"UnknownLoss",
     kCompile,
     5,
     {"HN-0203", "\"softmax_crossentropy\"", "did you mean \"softmax_cross_entropy\"?"},
     recipe("[loss]\nkind = \"softmax_crossentropy\"\n[optimizer]\nkind = \"sgd\"\n")},
    {"UnknownOptimizer",
     kCompile,
     5,
     {"HN-0203", "\"adamm\"", "did you mean \"adam", "this version has"},
     recipe("[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"adamm\"\n")},
    {"KerasNameOfALoss",
     kCompile,
     5,
     {"HN-0203", "\"SparseCategoricalCrossentropy\"", "\"softmax_cross_entropy\" for logits, \"cross_entropy\" for probabilities"},
     recipe("[loss]\nkind = \"SparseCategoricalCrossentropy\"\n[optimizer]\nkind = \"sgd\"\n")},
    {"TorchNameOfALoss", kCompile, 5, {"HN-0203", "\"BCEWithLogitsLoss\"", "\"bce_with_logits\""}, recipe("[loss]\nkind = \"BCEWithLogitsLoss\"\n[optimizer]\nkind = \"sgd\"\n")},
    {"OtherNameOfAMetric", kCompile, 5, {"HN-0203", "\"sparse_categorical_accuracy\"", "it is \"accuracy\""}, good_and("[metrics]\nlist = [\"sparse_categorical_accuracy\"]\n")},
    {"OtherNameOfAPrecision", set("train.precision=float16"), 5, {"HN-0203", "\"float16\"", "it is \"f16\""}, recipe(kGood)},
    {"OtherNameOfAKey", kCompile, 5, {"HN-0202", "\"optimizer.lr\"", "it is optimizer.learning_rate"}, good_and("lr = 0.1\n")},
    {"KeyLikeNoneOfItsSection", set("optimizer.foo=1"), 5, {"HN-0202", "\"optimizer.foo\"", "it has optimizer.kind"}, recipe(kGood)},
    {"SectionOfAnotherName", kCompile, 5, {"HN-0202", "\"callbacks\"", "train.early_stopping", "--run-dir"}, good_and("[callbacks]\npatience = 3\n")},
    {"SectionAsAKey", kCompile, 5, {"HN-0202", "\"loss\" stands outside of any section", "[loss] on a line of its own", "kind"}, recipe("loss = \"mse\"\n")},
    {"LetterThatIsNotAscii", kCompile, 5, {"HN-0201", "not TOML", "train.toml:6"}, good_and("# Größe\nGröße = 3\n")},
    {"MoreBatchesToAccumulateThanCount", set("train.gradient_accumulation_steps=9223372036854775807"), 5, {"HN-0203", "at most 1000000"}, recipe(kGood)},
    {"UnknownMetric", kCompile, 5, {"HN-0203", "\"acuracy\"", "did you mean \"accuracy\"?"}, good_and("[metrics]\nlist = [\"acuracy\"]\n")},
    {"MetricOfClassesForALossOfValues",
     kCompile,
     5,
     {"HN-0203", "accuracy", "mse"},
     recipe("[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\n[metrics]\nlist = [\"accuracy\"]\n")},
    {"MetricOfMoreClassesThanThereAre", kCompile, 5, {"HN-0204", "top_5_accuracy", "3"}, good_and("[metrics]\nlist = [\"top_5_accuracy\"]\n")},
    {"ClassWeightsOfAnotherNumber", set("loss.class_weights=[1,2]"), 5, {"HN-0204", "loss.class_weights has 2 numbers", "has 3 classes", "one number a class"}, recipe(kGood)},
    {"ClassWeightsBelowZero", set("loss.class_weights=[1,2,-1]"), 5, {"HN-0203", "number 2 is -1", "at least 0"}, recipe(kGood)},
    {"ClassWeightsForALossOfValues",
     kCompile,
     5,
     {"HN-0202", "loss.class_weights is about integer classes", "mse"},
     recipe("[loss]\nkind = \"mse\"\nclass_weights = [1, 2]\n[optimizer]\nkind = \"sgd\"\n")},
    {"ClassesAlongTheSamples", set("loss.class_axis=0"), 5, {"HN-0204", "loss.class_axis = 0 is the first axis", "f32[N,3]", "that of the samples"}, recipe(kGood)},
    {"DataTimesZero", set("data.scale.x=0"), 5, {"HN-0203", "the factor of \"x\" is 0"}, recipe(kGood)},
    {"MomentumBeyondAll", set("optimizer.kind=sgd") + " --set optimizer.momentum=2", 5, {"HN-0203", "optimizer.momentum is 2", "at most 1"}, recipe(kGood)},
    {"BatchOfLessThanNone", kCompile + " --batch -1", 2, {"--batch -1", "a number of samples"}, recipe(kGood)},
    {"SampleWeightsWithoutSamples",
     set("loss.sample_weights=true") + " --set loss.kind=cosine --set loss.class_axis=0",
     5,
     {"HN-0204", "loss.sample_weights", "no axis of samples"},
     recipe(kGood)},
    {"SampleWeightsOfAPrediction",
     "hone-run predict weighted.hone --data x=x.npy,sample_weight=y.npy --out o.npy",
     4,
     {"no input \"sample_weight\"", "predict takes no weights of samples", "and prediction never"},
     [](const TempFolder& folder) {
       write_mlp(folder);
       run_well(folder.path(), "hone-compile mlp.onnx -r train.toml --set loss.sample_weights=true -o weighted.hone");
     }},
    {"SampleWeightsThatAreNotGiven",
     "hone-run train weighted.hone --train x=x.npy,y=y.npy --out t.onnx",
     4,
     {"nothing feeds the input \"sample_weight\"", "add sample_weight=FILE"},
     [](const TempFolder& folder) {
       write_mlp(folder);
       folder.write("train.toml", kGood);
       run_well(folder.path(), "hone-compile mlp.onnx -r train.toml --set loss.sample_weights=true -o weighted.hone");
     }},
    {"MetricOfTwoClassesForMore", kCompile, 5, {"HN-0204", "auc is of two classes", "f32[N,3]", "has 3"}, good_and("[metrics]\nlist = [\"auc\"]\n")},
    {"MetricOfValuesForClasses", kCompile, 5, {"HN-0203", "the metric r2 says nothing", "it goes with mse, mae, huber"}, good_and("[metrics]\nlist = [\"r2\"]\n")},
    {"MetricOfALossThatTheModelGives",
     kCompile,
     5,
     {"HN-0203", "the metric accuracy says nothing", "output"},
     recipe("[loss]\nkind = \"output\"\n[optimizer]\nkind = \"sgd\"\n[metrics]\nlist = [\"accuracy\"]\n")},
    {"ClipNormBelowZero", set("optimizer.clip_norm=-1"), 5, {"HN-0203", "optimizer.clip_norm is -1", "at least 0"}, recipe(kGood)},
    {"TwoWaysOfClipping", set("optimizer.clip_norm=1") + " --set optimizer.clip_value=1", 5, {"HN-0203", "are both set", "keep one"}, recipe(kGood)},
    {"MuonExclusionThatMatchesNothing",
     kCompile,
     5,
     {"HN-0204", "optimizer.exclude_from_muon", "\"embed*\"", "dense"},
     recipe("[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"muon\"\nexclude_from_muon = [\"embed*\"]\n")},
    {"NoBatchesToAccumulate", set("train.gradient_accumulation_steps=0"), 5, {"HN-0203", "at least 1"}, recipe(kGood)},
    {"AverageThatNeverMoves", set("train.ema_decay=1"), 5, {"HN-0203", "train.ema_decay is 1", "less than 1"}, recipe(kGood)},
    {"MonitorThatIsNotReported", set("train.early_stopping.monitor=val_accuracy"), 5, {"HN-0203", "nothing that the run reports", "loss, val_loss"}, recipe(kGood)},
    {"PlateauThatDoesNotDrop", set("schedule.kind=plateau") + " --set schedule.factor=1", 5, {"HN-0203", "less than 1"}, recipe(kGood)},
    {"KeyThatTheScheduleHasNot", set("schedule.factor=0.5"), 5, {"HN-0202", "the schedule constant has no factor", "it has warmup_steps", "schedule.kind says which"}, recipe(kGood)},
    {"KeyOfAnotherSchedule", set("schedule.kind=cosine") + " --set schedule.every=2", 5, {"HN-0202", "the schedule cosine has no every", "final_fraction, total_steps"}, recipe(kGood)},
    {"NumberThatTheOptimizerHasNot", kCompile, 5, {"HN-0202", "sgd", "beta1", "it has"}, good_and("beta1 = 0.9\n")},
    {"LossWithoutOptimizer", kCompile, 5, {"HN-0203", "optimizer.kind is missing"}, recipe("[loss]\nkind = \"mse\"\n")},
    {"OptimizerWithoutLoss", kCompile, 5, {"HN-0203", "loss.kind is missing"}, recipe("[optimizer]\nkind = \"sgd\"\n")},
    {"FreezePatternThatMatchesNothing", kCompile, 5, {"HN-0204", "model.freeze", "\"backbone.*\"", "dense"}, good_and("[model]\nfreeze = [\"backbone.*\"]\n")},
    {"FreezePatternOfAPartOfTheName", kCompile, 5, {"HN-0204", "\"dense_1\"", "did you mean \"dense_1*\"?"}, good_and("[model]\nfreeze = [\"dense_1\"]\n")},
    {"TrainOnlyPatternThatMatchesNothing", kCompile, 5, {"HN-0204", "model.train_only", "\"head*\""}, good_and("[model]\ntrain_only = [\"head*\"]\n")},
    {"TrainOnlyPartOfMoreAxes", kCompile, 5, {"HN-0204", "\"dense/kernel[:,:,0:1]\" names 3 axes, the weight has 2", "one FROM:TO for each axis"}, good_and("[model]\ntrain_only = [\"dense/kernel[:,:,0:1]\"]\n")},
    {"NestedWithoutEnd", kCompile, 5, {"HN-0201", "exceeded maximum nested value depth of 256\n"}, good_and("[model]\nfreeze = " + std::string(400, '[') + std::string(400, ']') + "\n")},
    {"KeptNodeThatDoesNotExist",
     kCompile,
     5,
     {"HN-0204", "train.keep_f32", "\"relo\"", "did you mean \"relu\"?", "nodes:"},
     good_and("[train]\nprecision = \"bf16\"\nkeep_f32 = [\"relo\"]\n")},
    {"EverythingKeptInF32",
     kCompile,
     5,
     {"HN-0204", "train.precision = \"bf16\"", "nothing of the model can run in bf16", "train.keep_f32 names it", "leave train.precision out"},
     good_and("[train]\nprecision = \"bf16\"\nkeep_f32 = [\"*\"]\n")},
    {"DropoutAfterAnUnknownNode",
     kCompile,
     5,
     {"HN-0204", "model.dropout.after", "\"relo\"", "did you mean \"relu\"?", "\"dense_1\""},
     good_and("[model]\ndropout = { after = \"relo\", rate = 0.1 }\n")},
    {"DropoutOfEverything", kCompile, 5, {"HN-0203", "model.dropout.rate is 1", "less than 1"}, good_and("[model]\ndropout = { after = \"relu\", rate = 1.0 }\n")},
    {"DropoutOfLessThanNothing", kCompile, 5, {"HN-0203", "model.dropout.rate is -0.1", "at least 0"}, good_and("[model]\ndropout = { after = \"relu\", rate = -0.1 }\n")},
    {"DropoutWithoutARate", kCompile, 5, {"HN-0203", "model.dropout needs both", "for example"}, good_and("[model]\ndropout = { after = \"relu\" }\n")},
    {"DropoutWithoutAPlace", kCompile, 5, {"HN-0203", "model.dropout needs both", "for example"}, good_and("[model]\ndropout = { rate = 0.1 }\n")},
    {"EverythingFrozen", kCompile, 5, {"HN-0204", "model.freeze names all weights", "\"dense/kernel\""}, good_and("[model]\nfreeze = [\"*\"]\n")},
    {"OutputThatDoesNotExist", kCompile, 5, {"HN-0204", "model.output", "\"logit\"", "\"logits\""}, good_and("[model]\noutput = \"logit\"\n")},
    {"ClassAxisThatIsNone", set("loss.class_axis=2"), 5, {"HN-0204", "loss.class_axis = 2", "f32[N,3]"}, recipe(kGood)},
    {"SetWithoutAValue", set("optimizer.kind"), 2, {"HN-0001", "expected KEY=VALUE"}, recipe(kGood)},
    {"SetOfATableWhereANumberBelongs", set("optimizer.learning_rate={}"), 5, {"HN-0203", "optimizer.learning_rate is a number, and a table of numbers by name was found"}, recipe(kGood)},
    {"SetOfATableThatIsNoKey", set("optimiser={}"), 5, {"HN-0202", "\"optimiser\""}, recipe(kGood)},
    {"SetOfAnUnknownKey", set("train.epoch=3"), 5, {"HN-0202", "\"train.epoch\"", "--set", "did you mean \"train.epochs\"?"}, recipe(kGood)},
    {"ScaleOfAnUnknownInput",
     "hone-run train mlp.hone --train x=x.npy,y=y.npy --out t.onnx --set data.scale.pixels=0.5",
     4,
     {"\"pixels\"", "the inputs are x"},
     write_mlp_plan},
    {"KeyThatIsCompiledIn",
     "hone-run train mlp.hone --train x=x.npy,y=y.npy --out t.onnx --set optimizer.kind=sgd",
     5,
     {"optimizer.kind is compiled into the plan", "compile again"},
     write_mlp_plan},
    {"NumberThatThePlanHasNoUseFor",
     "hone-run train mlp.hone --train x=x.npy,y=y.npy --out t.onnx --set optimizer.weight_decay=0.1",
     5,
     {"HN-0202", "optimizer.weight_decay is 0 in the plan", "compile again with --set optimizer.weight_decay=0.1"},
     write_mlp_plan},
};

HONE_ERROR_CASES(RecipeErrors, kCases);

auto lora(const std::string& targets, const std::string& more = "") { return good_and("[lora]\ntargets = [" + targets + "]\n" + more); }

const ErrorCase kAdapters[] = {
    {"TargetThatMatchesNothing", kCompile, 5, {"HN-0204", "lora.targets: \"*q_proj*\" matches no weight of the model", "\"dense/kernel\"", "\"dense_1/kernel\""}, lora("\"*q_proj*\"")},
    {"TargetThatIsNoMatrix", kCompile, 5, {"HN-0204", "\"dense/bias\" matches no weight that can have an adapter", "adapters are for matrices, of rank 2"}, lora("\"dense/bias\"")},
    {"RankLargerThanTheMatrix", kCompile, 5, {"HN-0204", "lora.rank = 5", "\"dense/kernel\"", "take at most"}, lora("\"dense/kernel\"", "rank = 5\n")},
    {"WithoutALoss", kCompile, 5, {"HN-0203", "lora.targets is set, but loss.kind is missing"}, recipe("[lora]\ntargets = [\"dense/kernel\"]\n")},
    {"RankWithoutTargets", kCompile, 5, {"HN-0203", "lora.rank is set, but lora.targets names no weight", "for example"}, good_and("[lora]\nrank = 4\n")},
    {"FrozenTarget",
     kCompile,
     5,
     {"HN-0204", "model.freeze: \"dense/*\" names the weight \"dense/kernel\"", "leave it out of model.freeze"},
     lora("\"dense/kernel\"", "rank = 2\n[model]\nfreeze = [\"dense/*\"]\n")},
};

HONE_ERROR_CASES(AdapterErrors, kAdapters);

}  // namespace
}  // namespace hone::test
