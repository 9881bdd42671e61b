// The C++ API used wrongly: each use throws an Error that says what, where, why and a way out, in the program's own words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "api/hone.h"
#include "tests/errors/error_case.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;

struct Misuse {
  const char* name;
  Code code;
  std::vector<std::string> says;
  std::function<void(const TempFolder&)> use;
};

void PrintTo(const Misuse& misuse, std::ostream* stream) { *stream << misuse.name; }

class Api : public ::testing::TestWithParam<Misuse> {};

TEST_P(Api, SaysWhatWasUsedWrongly) {
  const TempFolder folder;
  try {
    GetParam().use(folder);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(to_string(error.diags().front().code), to_string(GetParam().code)) << message;
    for (const std::string& part : GetParam().says) EXPECT_THAT(message, HasSubstr(part));
    expect_helpful(message);
  }
}

// ---- what the uses begin with

const Recipe& recipe() {
  static const Recipe recipe = read_recipe_text("[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"adam\"\n[train]\nepochs = 1\n");
  return recipe;
}

std::string classifier(const TempFolder& folder) {
  nn::Model model("classifier");
  model.output("logits", nn::dense(model.input("x", {4}), 3));
  save_model(model, folder / "classifier.onnx");
  return folder / "classifier.onnx";
}

plan::Plan compiled(const Recipe& with) {
  const TempFolder folder;
  return compile_model(classifier(folder), with, {.levels = {"native"}});
}
const plan::Plan& trainable() {
  static const plan::Plan plan = compiled(recipe());
  return plan;
}
const plan::Plan& predicting() {
  static const plan::Plan plan = compiled(Recipe{});
  return plan;
}
/// The recipe with something changed in it by the program.
Recipe changed(const std::function<void(Recipe&)>& change) {
  Recipe own = recipe();
  change(own);
  return own;
}
SessionOptions options() { return {.device = "cpu", .threads = 1}; }

Tensor floats(std::vector<std::int64_t> shape, float value = 0.5F) {
  return Tensor::make(DType::kF32, std::move(shape), [&](std::span<std::byte> bytes) { std::fill_n(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float), value); });
}
Tensor classes(std::vector<std::int64_t> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return Tensor::of<std::int64_t>({count}, std::span<const std::int64_t>(values));
}
Dataset samples(std::vector<std::int64_t> labels = {0, 1, 2, 0}) {
  const auto count = static_cast<std::int64_t>(labels.size());
  return Dataset::from_tensor_slices({{"x", floats({count, 4})}, {"y", classes(std::move(labels))}});
}

void run(Session& session, const char* entry, const NamedTensors& tensors) {
  NamedViews feeds;
  for (const auto& [name, tensor] : tensors) feeds.emplace_back(name, tensor);
  session.run(entry, feeds);
}
void predict(const NamedTensors& feeds) {
  Session session(predicting(), options());
  run(session, plan::kPredict, feeds);
}
void fit(const Dataset& data, FitOptions with = {}) {
  with.quiet = true;
  Trainer(trainable(), options()).fit(data, std::move(with));
}
void go_through(const Dataset& data) {
  for (const Example& example : data.iterate()) (void)example;
}
/// A model with an input of that sample shape, and a layer on it.
void layer(const Shape& sample, const std::function<void(nn::Value)>& build, DType dtype = DType::kF32) {
  nn::Model model("wrong");
  build(model.input("x", sample, dtype));
}

// ---- the uses

const std::vector<Misuse> kModels = {
    {"InputWithTheAxisOfSamples", Code::kShape, {"samples of the input \"x\"", "N is the number of samples"}, [](const TempFolder&) {
       nn::Model model("m");
       model.input("x", {Dim::symbol("N"), 4});
     }},
    {"TwoInputsOfAName", Code::kBadGraph, {"an input \"x\" already"}, [](const TempFolder&) {
       nn::Model model("m");
       model.input("x", {1});
       model.input("x", {2});
     }},
    {"TwoOutputsOfAName", Code::kBadGraph, {"an output \"y\" already"}, [](const TempFolder&) {
       nn::Model model("m");
       const nn::Value x = model.input("x", {1});
       model.output("y", x);
       model.output("y", x);
     }},
    {"ValuesOfTwoModels", Code::kBadGraph, {"add: one operand is of the model \"a\", and one of the model \"b\""}, [](const TempFolder&) {
       nn::Model a("a"), b("b");
       a.input("x", {1}) + b.input("x", {1});
     }},
    {"OutputOfAnotherModel", Code::kBadGraph, {"output \"y\" is a value of another model"}, [](const TempFolder&) {
       nn::Model a("a"), b("b");
       b.output("y", a.input("x", {1}));
     }},
    {"ModelWithoutAnOutput", Code::kBadGraph, {"no output"}, [](const TempFolder& folder) {
       nn::Model model("m");
       nn::dense(model.input("x", {4}), 2);
       save_model(model, folder / "m.onnx");
     }},
    {"ModelAsWeightsAlone", Code::kUsage, {"save_model \"", "a model is written as .onnx"}, [](const TempFolder& folder) {
       nn::Model model("m");
       model.output("y", model.input("x", {1}));
       save_model(model, folder / "m.safetensors");
     }},
    {"NoUnits", Code::kShape, {"dense: the number of units is 0"}, [](const TempFolder&) { layer({4}, [](nn::Value x) { nn::dense(x, 0); }); }},
    {"UnitsOverflow", Code::kTooLarge, {"dense/kernel"}, [](const TempFolder&) { layer({std::int64_t{1} << 40}, [](nn::Value x) { nn::dense(x, std::int64_t{1} << 40); }); }},
    {"ConvolutionOfAVector", Code::kShape, {"conv: its input [N,5] has no spatial axis"}, [](const TempFolder&) { layer({5}, [](nn::Value x) { nn::conv(x, 4, 3); }); }},
    {"WindowOfNothing", Code::kShape, {"conv: the window's extent is 0"}, [](const TempFolder&) { layer({1, 8, 8}, [](nn::Value x) { nn::conv(x, 4, 0); }); }},
    {"WindowLargerThanTheImage", Code::kShape, {"window"}, [](const TempFolder&) { layer({1, 8, 8}, [](nn::Value x) { nn::conv(x, 4, 9); }); }},
    {"ChannelsLast", Code::kShape, {"conv: a window reaches over 3 elements, and axis 3 of its input [N,28,28,1] has 1", "nn::permute(x, {3, 1, 2})"}, [](const TempFolder&) { layer({28, 28, 1}, [](nn::Value x) { nn::conv(x, 32, 3); }); }},
    {"StrideOfNothing", Code::kShape, {"conv: the stride is 0"}, [](const TempFolder&) { layer({1, 8, 8}, [](nn::Value x) { nn::conv(x, 4, 3, {.stride = 0}); }); }},
    {"GroupsThatDoNotDivide", Code::kShape, {"conv: 3 groups do not divide both 4 and 6 channels"}, [](const TempFolder&) { layer({4, 8, 8}, [](nn::Value x) { nn::conv(x, 6, 3, {.groups = 3}); }); }},
    {"PoolLargerThanTheImage", Code::kShape, {"window"}, [](const TempFolder&) { layer({1, 3, 3}, [](nn::Value x) { nn::max_pool(x, 4); }); }},
    {"ReshapeToAnotherCount", Code::kShape, {"[N,12]", "[5]"}, [](const TempFolder&) { layer({12}, [](nn::Value x) { nn::reshape(x, {5}); }); }},
    {"PermuteAnAxisTwice", Code::kBadAttribute, {"transpose"}, [](const TempFolder&) { layer({3, 4}, [](nn::Value x) { nn::permute(x, {1, 1}); }); }},
    {"EmbeddingOfFloats", Code::kType, {"f32"}, [](const TempFolder&) { layer({3}, [](nn::Value x) { nn::embedding(x, 10, 4); }); }},
    {"HeadsThatDoNotDivide", Code::kShape, {"4 heads do not divide 6 features"}, [](const TempFolder&) { layer({5, 6}, [](nn::Value x) { nn::self_attention(x, 4); }); }},
    {"AddShapesThatDoNotFit", Code::kShape, {"[N,3]", "[N,4]"}, [](const TempFolder&) {
       nn::Model model("m");
       model.input("a", {3}) + model.input("b", {4});
     }},
};

const std::vector<Misuse> kPlans = {
    {"RecipeWithoutItsOptimizersNumbers", Code::kUsage, {"the recipe has the optimizer adam, and none of its numbers", "read_recipe_text()"}, [](const TempFolder&) {
       Recipe own;
       own.loss.kind = "softmax_cross_entropy";
       own.optimizer.kind = "adam";
       own.optimizer.learning_rate = 0.01;
       (void)compiled(own);
     }},
    {"RecipeOfAnotherOptimizerThanItWasMadeFor", Code::kRecipeKey, {"rmsprop", "beta1", "make another one for another optimizer"}, [](const TempFolder&) { (void)compiled(changed([](Recipe& own) { own.optimizer.kind = "rmsprop"; })); }},
    {"RecipeWithAMisspelledOptimizer", Code::kRecipeValue, {"adma", "adam"}, [](const TempFolder&) { (void)compiled(changed([](Recipe& own) { own.optimizer.kind = "adma"; })); }},
    {"RecipeOfNoRank", Code::kRecipeValue, {"lora.rank is 0"}, [](const TempFolder&) { (void)compiled(changed([](Recipe& own) { own.lora.targets = {"dense/kernel"}, own.lora.rank = 0; })); }},
    {"RecipeWithAnUnknownPrecision", Code::kRecipeValue, {"train.exchange_precision", "fp16"}, [](const TempFolder&) { (void)compiled(changed([](Recipe& own) { own.train.exchange_precision = "fp16"; })); }},
    {"RecipeWithARateThatIsNoNumberWhenCompiling", Code::kRecipeValue, {"optimizer.learning_rate is nan"}, [](const TempFolder&) { (void)compiled(changed([](Recipe& own) { own.optimizer.learning_rate = std::numeric_limits<double>::quiet_NaN(); })); }},
    {"RecipeWithAMetricTwice", Code::kRecipeValue, {"metrics.list", "accuracy"}, [](const TempFolder&) { (void)compiled(changed([](Recipe& own) { own.metrics.list = {"accuracy", "accuracy"}; })); }},
    {"NoSuchModelFile", Code::kFileOpen, {"missing.onnx"}, [](const TempFolder& folder) { compile_model(folder / "missing.onnx", recipe()); }},
    {"NoSuchRecipeFile", Code::kFileOpen, {"missing.toml"}, [](const TempFolder& folder) { read_recipe_file(folder / "missing.toml"); }},
    {"UnknownRecipeKey", Code::kRecipeKey, {"optimizer.learningrate", "optimizer.learning_rate"}, [](const TempFolder&) { read_recipe_text("[optimizer]\nlearningrate = 1\n"); }},
    {"UnknownSize", Code::kUsage, {"\"M\"", "N"}, [](const TempFolder& folder) { compile_model(classifier(folder), recipe(), {.dims = {{"M", 3}}}); }},
    {"NegativeSize", Code::kUsage, {"N", "-1"}, [](const TempFolder& folder) { compile_model(classifier(folder), recipe(), {.dims = {{"N", -1}}}); }},
    {"UnknownDevice", Code::kDevice, {"quantum"}, [](const TempFolder&) { Session(trainable(), {.device = "quantum"}); }},
    {"NegativeThreads", Code::kUsage, {"-2"}, [](const TempFolder&) { Session(trainable(), {.device = "cpu", .threads = -2}); }},
    {"MisspelledEntry", Code::kPlanEntry, {"\"predcit\"", "did you mean \"predict\"?"}, [](const TempFolder&) { run(*std::make_unique<Session>(predicting(), options()), "predcit", {}); }},
    {"RunWithinARun", Code::kUsage, {"the session is in a run of another thread", "make one for each thread"}, [](const TempFolder&) {
       Session session(predicting(), options());
       struct Feeding : FeedMaker {
         explicit Feeding(Session& used) : session(used) {}
         void make(int, int) noexcept override {
           try {
             run(session, plan::kPredict, {{"x", floats({1, 4})}});
           } catch (const Error& error) { said = error.diags(); }
         }
         Session& session;
         std::vector<Diag> said;
       } feeding(session);
       const Tensor x = floats({1, 4});
       NamedViews feeds = {{"x", x}};
       feeds[0].second.maker = &feeding;
       session.run(plan::kPredict, feeds);
       EXPECT_EQ(session.result_tensor("logits").shape(), (std::vector<std::int64_t>{1, 3})) << "the outer run is not disturbed";
       throw Error(feeding.said);
     }},
    {"UnknownEntry", Code::kPlanEntry, {"\"train_step\"", "predict"}, [](const TempFolder&) { run(*std::make_unique<Session>(predicting(), options()), plan::kTrainStep, {}); }},
    {"MissingFeed", Code::kDataName, {"\"x\""}, [](const TempFolder&) { predict({}); }},
    {"UnknownFeed", Code::kDataName, {"\"z\""}, [](const TempFolder&) { predict({{"x", floats({1, 4})}, {"z", floats({1, 4})}}); }},
    {"FeedOfAnotherType", Code::kDataType, {"\"x\"", "i64", "f32"}, [](const TempFolder&) { predict({{"x", Tensor::zeros(DType::kI64, {1, 4})}}); }},
    {"FeedOfAnotherShape", Code::kDataShape, {"\"x\"", "[1,5]", "[N,4]"}, [](const TempFolder&) { predict({{"x", floats({1, 5})}}); }},
    {"FeedOfAnotherRank", Code::kDataShape, {"\"x\"", "[4]", "[N,4]"}, [](const TempFolder&) { predict({{"x", floats({4})}}); }},
    {"UnknownResult", Code::kDataName, {"\"nothing\"", "logits"}, [](const TempFolder&) {
       Session session(predicting(), options());
       run(session, plan::kPredict, {{"x", floats({1, 4})}});
       session.result_tensor("nothing");
     }},
    {"UnknownWeight", Code::kPlanMismatch, {"\"nothing\""}, [](const TempFolder&) { Session(predicting(), options()).read("nothing"); }},
    {"WeightOfAnotherShape", Code::kPlanMismatch, {"\"dense/bias\"", "[4]", "[3]"}, [](const TempFolder&) { Session(predicting(), options()).write("dense/bias", floats({4})); }},
    {"WeightOfAnotherType", Code::kPlanMismatch, {"\"dense/bias\"", "i64"}, [](const TempFolder&) { Session(predicting(), options()).write("dense/bias", classes({1, 2, 3})); }},
    {"SessionThatWasMovedFrom", Code::kUsage, {"a session is used that was moved from"}, [](const TempFolder&) {
       Session session(predicting(), options());
       const Session other = std::move(session);
       session.threads();  // NOLINT(bugprone-use-after-move)
     }},
    {"NoSuchPlanFile", Code::kFileOpen, {"missing.hone"}, [](const TempFolder& folder) { plan::load(folder / "missing.hone"); }},
};

const std::vector<Misuse> kData = {
    {"ElementOfATensorThatWasMoved", Code::kUsage, {"0"}, [](const TempFolder&) {
       Tensor tensor = floats({3});
       const Tensor other = std::move(tensor);
       (void)tensor.at(0);  // NOLINT(bugprone-use-after-move)
     }},
    {"WordsOfTextsWithoutAnEnd", Code::kUsage, {"Vocabulary::count", "no end", "repeat()"}, [](const TempFolder& folder) {
       folder.write("t.txt", "a b\n");
       (void)Vocabulary::count(Dataset::from_lines({folder / "t.txt"}).repeat());
     }},
    {"FewerWordsThanNone", Code::kUsage, {"most_words is -1"}, [](const TempFolder& folder) {
       folder.write("t.txt", "a b\n");
       (void)Vocabulary::count(Dataset::from_lines({folder / "t.txt"}), "line", {.most_words = -1});
     }},
    {"PaddingThatTheTypeDoesNotHold", Code::kUsage, {"300", "u8"}, [](const TempFolder&) { (void)pad_sequence(text_tensor("ab"), 4, {.value = 300}); }},
    {"TooManyThreadsOfAMap", Code::kUsage, {"the number of threads is 100000", "1 to 1024"}, [](const TempFolder&) { (void)samples().map([](Example example) { return example; }, {.threads = 100'000}); }},
    {"ACycleThatFitsIntoNoMemory", Code::kUsage, {"interleave", "in a cycle"}, [](const TempFolder&) { (void)samples().interleave([](const Example&) { return samples(); }, std::numeric_limits<std::int64_t>::max()); }},
    {"PaddingOfATensorThatThereIsNot", Code::kDataName, {"no \"z\", whose padding is given", "it has x, y"}, [](const TempFolder&) { *samples().map([](Example example) { return example; }).padded_batch(2, {{"z", 1}}).iterate().begin(); }},
    {"RowsOfExamplesThatAreNoBatches", Code::kDataShape, {"unbatch: example 0", "is a single number, and has no rows"}, [](const TempFolder&) { *Dataset::from_tensor_slices({{"y", classes({0, 1})}}).unbatch().iterate().begin(); }},
    {"ZipOfNothing", Code::kUsage, {"zip: no data sets are given"}, [](const TempFolder&) { (void)Dataset::zip({}); }},
    {"BatchesWithoutTheirAxis", Code::kUsage, {"any number of samples, N", "batch_symbol"}, [](const TempFolder&) {
       const Session session(trainable(), options());
       DatasetBatches batches(session.entry(plan::kTrainStep), samples().batch(2), {});
       batches.start_epoch(0);
       batches.next();
     }},
    {"SlicesOfDifferentLength", Code::kDataLength, {"4 rows", "3"}, [](const TempFolder&) { Dataset::from_tensor_slices({{"x", floats({4, 4})}, {"y", classes({0, 1, 2})}}); }},
    {"SlicesOfAScalar", Code::kDataLength, {"no rows"}, [](const TempFolder&) { Dataset::from_tensor_slices({{"x", floats({})}}); }},
    {"NameGivenTwice", Code::kDataName, {"\"x\" is given twice"}, [](const TempFolder&) { Dataset::from_tensor_slices({{"x", floats({4})}, {"x", floats({4})}}); }},
    {"NoSuchDataFile", Code::kFileOpen, {"missing.npy"}, [](const TempFolder& folder) { Dataset::from_files({"x=" + folder / "missing.npy"}); }},
    {"NoSuchTextFile", Code::kFileOpen, {"missing.txt"}, [](const TempFolder& folder) { Dataset::from_lines({folder / "missing.txt"}); }},
    {"BatchOfNothing", Code::kUsage, {"batch: the size is 0"}, [](const TempFolder&) { samples().batch(0); }},
    {"ShuffleThroughNothing", Code::kUsage, {"shuffle: the buffer is 0"}, [](const TempFolder&) { samples().shuffle(0); }},
    {"ShardThatIsNotThere", Code::kUsage, {"no shard 2 of 2"}, [](const TempFolder&) { samples().shard(2, 2); }},
    {"NegativeThreadsOfAMap", Code::kUsage, {"map: the number of threads is -1"}, [](const TempFolder&) { samples().map([](Example example) { return example; }, {.threads = -1}); }},
    {"MapThatThrows", Code::kDataFormat, {"map: example 0", "too blue"}, [](const TempFolder&) { go_through(samples().map([](const Example&) -> Example { throw std::runtime_error("too blue"); })); }},
    {"BatchOfDifferentShapes", Code::kDataShape, {"[4]", "[2]"}, [](const TempFolder&) {
       go_through(Dataset::from_generator([] {
                    return [i = 0]() mutable -> std::optional<Example> { return Example{{"x", floats({i++ == 0 ? 4 : 2})}}; };
                  }).batch(2));
     }},
    {"ElementsOfAnotherType", Code::kUsage, {"the elements of a tensor f32[3] are asked for as f64"}, [](const TempFolder&) { floats({3}).data<double>(); }},
    {"ElementThatIsNotThere", Code::kUsage, {"element 3 of a tensor f32[3]", "which has 3"}, [](const TempFolder&) { floats({3}).at(3); }},
    {"IntegersOfFloats", Code::kUsage, {"int_at() reads integers, and the tensor is f32[3]"}, [](const TempFolder&) { floats({3}).int_at(0); }},
    {"ShapeOfAnotherCount", Code::kUsage, {"a tensor f32[3] cannot be read as [2,2]"}, [](const TempFolder&) { floats({3}).reshaped({2, 2}); }},
    {"ElementsOfAnotherCount", Code::kUsage, {"a tensor f32[2] takes 8 bytes, and 4 are given"}, [](const TempFolder&) { Tensor::of<float>({2}, std::vector<float>{1}); }},
    {"BatchesOfAnEpochThatWasNotBegun", Code::kUsage, {"the samples: batches are asked for before an epoch was begun", "start_epoch"}, [](const TempFolder&) {
       Session session(trainable(), options());
       DatasetBatches(session.entry(plan::kTrainStep), samples().batch(2), {.flag = "the samples", .batch_symbol = trainable().batch_symbol}).next();
     }},
    {"TensorThatIsNotThere", Code::kDataName, {"\"z\"", "x, y"}, [](const TempFolder&) { go_through(samples().map([](Example example) { return Example{{"x", tensor_of(example, "z")}}; })); }},
};

const std::vector<Misuse> kTraining = {
    {"ValidationIsLookedAtBeforeTheFirstStep", Code::kDataName, {"the data to validate on"}, [](const TempFolder&) {
       const Dataset without_targets = Dataset::from_tensor_slices({{"x", floats({4, 4})}});
       const auto stepped = [](const StepRecord&) { ADD_FAILURE() << "a step was made"; };
       fit(samples().batch(2), {.valid = without_targets.batch(2), .on_step = stepped});
     }},
    {"PlanThatCannotTrain", Code::kPlanEntry, {"without a recipe", "not train"}, [](const TempFolder&) { Trainer(predicting(), options()).fit(samples().batch(2)); }},
    {"PlanThatCannotEvaluate", Code::kPlanEntry, {"not evaluate"}, [](const TempFolder&) { Trainer(predicting(), options()).evaluate(samples().batch(2)); }},
    {"DataWithoutBatches", Code::kDataShape, {"x of the data set is f32[4]", "batch(n)"}, [](const TempFolder&) { fit(samples()); }},
    {"ImagesWhoseChannelsComeLast", Code::kDataShape, {"its channels come last, and the model's first", "nn::permute(x, {3, 1, 2})"}, [](const TempFolder& folder) {
       nn::Model model("images");
       model.output("logits", nn::dense(nn::flatten(nn::conv(model.input("x", {3, 8, 8}), 2, 3)), 3));
       save_model(model, folder / "images.onnx");
       Trainer(compile_model(folder / "images.onnx", recipe(), {.levels = {"native"}}), options()).fit(Dataset::from_tensor_slices({{"x", floats({4, 8, 8, 3})}, {"y", classes({0, 1, 2, 0})}}).batch(2), {.quiet = true});
     }},
    {"NoTarget", Code::kDataName, {"nothing feeds the target", "a tensor called y"}, [](const TempFolder&) { fit(Dataset::from_tensor_slices({{"x", floats({4, 4})}}).batch(2)); }},
    {"NameThatTheModelDoesNotHave", Code::kDataName, {"\"pixels\""}, [](const TempFolder&) { fit(Dataset::from_tensor_slices({{"pixels", floats({4, 4})}, {"y", classes({0, 1, 2, 0})}}).batch(2)); }},
    {"NothingToPredictOn", Code::kDataLength, {"no batch to predict on"}, [](const TempFolder&) { Trainer(trainable(), options()).predict(samples().take(0).batch(2)); }},
    {"LabelOutOfRange", Code::kDataRange, {"3", "row 2"}, [](const TempFolder&) { fit(samples({0, 1, 3, 0}).batch(2)); }},
    {"FeaturesThatDoNotFit", Code::kDataShape, {"[N,4]"}, [](const TempFolder&) { fit(Dataset::from_tensor_slices({{"x", floats({4, 5})}, {"y", classes({0, 1, 2, 0})}}).batch(2)); }},
    {"NoExamples", Code::kDataLength, {"no batch"}, [](const TempFolder&) { fit(samples().take(0).batch(2)); }},
    {"KeepNoCheckpoint", Code::kUsage, {"fit: keep is 0"}, [](const TempFolder& folder) { fit(samples().batch(2), {.run_dir = folder / "run", .keep = 0}); }},
    {"ResumeWithoutARunFolder", Code::kUsage, {"fit: resume goes on from the checkpoints in run_dir, which is not given", "give run_dir"}, [](const TempFolder&) { fit(samples().batch(2), {.resume = true}); }},
    {"CheckpointsWithoutARunFolder", Code::kUsage, {"fit: save_steps and keep_best are about the checkpoints in run_dir"}, [](const TempFolder&) { fit(samples().batch(2), {.save_steps = 2}); }},
    {"BestCheckpointWithoutARunFolder", Code::kUsage, {"fit: save_steps and keep_best are about the checkpoints in run_dir"}, [](const TempFolder&) { fit(samples().batch(2), {.keep_best = true}); }},
    {"DataWithoutAnEnd", Code::kUsage, {"the data to train on have no end", "limit = n", "steps = n", "take(n)"}, [](const TempFolder&) { fit(samples().repeat().batch(2)); }},
    {"DataToValidateOnWithoutAnEnd", Code::kUsage, {"the data to validate on have no end", "valid_limit = n"}, [](const TempFolder&) { fit(samples().batch(2), {.valid = samples().repeat().batch(2)}); }},
    {"NegativeLimit", Code::kUsage, {"fit: limit is -1"}, [](const TempFolder&) { fit(samples().batch(2), {.limit = -1}); }},
    {"NoEpochs", Code::kRecipeValue, {"epochs"}, [](const TempFolder&) { fit(samples().batch(2), {.epochs = -1}); }},
    {"RecipeWithANegativeRate", Code::kRecipeValue, {"optimizer.learning_rate is -1", "in Trainer::recipe()"}, [](const TempFolder&) {
       Trainer trainer(trainable(), options());
       trainer.recipe().optimizer.learning_rate = -1;
       trainer.fit(samples().batch(2), {.quiet = true});
     }},
    {"RecipeWithoutEpochs", Code::kRecipeValue, {"train.epochs is 0", "in Trainer::recipe()"}, [](const TempFolder&) {
       Trainer trainer(trainable(), options());
       trainer.recipe().train.epochs = 0;
       trainer.fit(samples().batch(2), {.epochs = 1, .quiet = true});
     }},
    {"RecipeOfAnotherOptimizer", Code::kRecipeKey, {"optimizer.kind is compiled into the plan", "in Trainer::recipe()"}, [](const TempFolder&) {
       Trainer trainer(trainable(), options());
       trainer.recipe().optimizer.kind = "sgd";
       trainer.fit(samples().batch(2), {.quiet = true});
     }},
    {"RecipeWithADecayThatThePlanHasNot", Code::kRecipeKey, {"optimizer.weight_decay is 0 in the plan", "in Trainer::recipe()"}, [](const TempFolder&) {
       Trainer trainer(trainable(), options());
       trainer.recipe().optimizer.weight_decay = 0.1;
       trainer.fit(samples().batch(2), {.quiet = true});
     }},
    {"RecipeWithARateThatIsNoNumber", Code::kRecipeValue, {"optimizer.learning_rate is nan"}, [](const TempFolder&) {
       Trainer trainer(trainable(), options());
       trainer.recipe().optimizer.learning_rate = std::numeric_limits<double>::quiet_NaN();
       trainer.fit(samples().batch(2), {.quiet = true});
     }},
    {"LossThatIsNotFinite", Code::kNotFinite, {"loss", "step 1"}, [](const TempFolder&) {
       fit(Dataset::from_tensor_slices({{"x", floats({2, 4}, std::numeric_limits<float>::quiet_NaN())}, {"y", classes({0, 1})}}).batch(2));
     }},
    {"FolderOfAnotherRun", Code::kUsage, {"holds the checkpoints of an earlier run", "resume"}, [](const TempFolder& folder) {
       fit(samples().batch(2), {.run_dir = folder / "run"});
       fit(samples().batch(2), {.run_dir = folder / "run"});
     }},
    {"FolderThatIsAFile", Code::kFileWrite, {"run"}, [](const TempFolder& folder) {
       folder.write("run", "a file");
       fit(samples().batch(2), {.run_dir = folder / "run"});
     }},
    {"WeightsOfAnotherModel", Code::kPlanMismatch, {"dense/kernel"}, [](const TempFolder& folder) {
       nn::Model model("other");
       model.output("logits", nn::dense(model.input("x", {5}), 3));
       save_model(model, folder / "other.onnx");
       Trainer(compile_model(folder / "other.onnx", recipe(), {.levels = {"native"}}), options()).save(folder / "other.safetensors");
       Trainer(trainable(), options()).load(folder / "other.safetensors");
     }},
    {"SaveAsKerasHasIt", Code::kUsage, {"save \"", "w.h5\"", "as .onnx, or its weights alone as .safetensors"}, [](const TempFolder& folder) { Trainer(trainable(), options()).save(folder / "w.h5"); }},
    {"SaveASessionOfAnotherPlan", Code::kUsage, {"save_trained_model: the session is of another plan", "the plan that the session was made of"}, [](const TempFolder& folder) {
       nn::Model model("other");
       model.output("logits", nn::dense(model.input("x", {5}), 3));
       save_model(model, folder / "other.onnx");
       const plan::Plan other = compile_model(folder / "other.onnx", recipe(), {.levels = {"native"}});
       Session session(other, options());
       save_trained_model(trainable(), session, folder / "w.onnx");
     }},
    {"SaveASessionAsAPlan", Code::kUsage, {"w.hone\"", "as .onnx"}, [](const TempFolder& folder) { save_trained_model(trainable(), *std::make_unique<Session>(trainable(), options()), folder / "w.hone"); }},
    {"SaveToAFolderThatIsNotThere", Code::kFileOpen, {"nowhere"}, [](const TempFolder& folder) { Trainer(trainable(), options()).save(folder / "nowhere/weights.safetensors"); }},
};

std::string name_of(const testing::TestParamInfo<Misuse>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Models, Api, ::testing::ValuesIn(kModels), name_of);
INSTANTIATE_TEST_SUITE_P(Plans, Api, ::testing::ValuesIn(kPlans), name_of);
INSTANTIATE_TEST_SUITE_P(Data, Api, ::testing::ValuesIn(kData), name_of);
INSTANTIATE_TEST_SUITE_P(Training, Api, ::testing::ValuesIn(kTraining), name_of);

}  // namespace
}  // namespace hone::test
