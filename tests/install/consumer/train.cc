// What a user's first program with Hone does: builds a network, compiles it, trains it on images that it makes up, and saves it.
//   train FOLDER    for the files
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "api/hone.h"

namespace {

constexpr std::int64_t kBatch = 16, kSide = 8;

/// Images with a bright row: which one is the class.
struct Batch {
  std::vector<float> images;
  std::vector<std::int64_t> classes;
  explicit Batch(std::int64_t number) : images(kBatch * kSide * kSide) {
    for (std::int64_t i = 0; i < kBatch; ++i) {
      const std::int64_t row = (number * 5 + i * 3) % kSide;
      for (std::int64_t k = 0; k < kSide; ++k) images[static_cast<std::size_t>((i * kSide + row) * kSide + k)] = 1;
      classes.push_back(row);
    }
  }
};

double train_step(hone::Session& session, std::int64_t number) {
  const Batch batch(number);
  const double rate = 0.01;
  const std::pair<std::string, hone::TensorView> feeds[] = {{"image", {hone::DType::kF32, {kBatch, kSide, kSide}, batch.images.data()}},
                                                            {"target", {hone::DType::kI64, {kBatch}, batch.classes.data()}},
                                                            {"learning_rate", {hone::DType::kF64, {}, &rate}}};
  session.run(hone::plan::kTrainStep, feeds);
  return session.result_tensor(hone::plan::kLossSum).at(0) / session.result_tensor(hone::plan::kTargetCount).at(0);
}

/// The same with a data set, and a callback that ends it when all is learned.
bool fit(const hone::plan::Plan& plan, const std::string& folder) {
  const Batch all(0);
  const hone::Dataset data = hone::Dataset::from_tensor_slices({{"x", hone::Tensor::of<float>({kBatch, kSide, kSide}, std::span<const float>(all.images))},
                                                                {"y", hone::Tensor::of<std::int64_t>({kBatch}, std::span<const std::int64_t>(all.classes))}});
  hone::Trainer trainer(plan, {.device = "cpu", .threads = 1});
  const hone::StopSignals signals;
  std::int64_t epochs = 0;
  const auto learn_enough = [&](const hone::EpochRecord& epoch) {
    ++epochs;
    if (hone::value_of(*epoch.values, "loss") < 0.1) trainer.end_training();
  };
  const hone::TrainResult result = trainer.fit(data.shuffle(kBatch, 1).batch(4).prefetch(),
                                               {.valid = data.batch(8), .epochs = 200, .run_dir = folder + "/run", .stop_requested = [&] { return signals.came(); }, .on_epoch = learn_enough});
  trainer.save(folder + "/fitted.onnx");
  std::printf("%lld epochs\n", static_cast<long long>(epochs));
  return result.end == hone::TrainResult::End::kEnded and epochs < 200 and hone::value_of(trainer.evaluate(data.batch(16)), "loss") < 0.2;
}

int train(const std::string& folder) {
  namespace nn = hone::nn;
  nn::Model model("rows");
  nn::Value x = nn::reshape(model.input("image", {kSide, kSide}), {1, kSide, kSide});
  x = nn::max_pool(nn::relu(nn::conv(x, 4, 3, {.same = true})), 2);
  model.output("logits", nn::dense(nn::relu(nn::dense(nn::flatten(x), 32)), kSide));
  hone::save_model(model, folder + "/rows.onnx");

  const hone::Recipe recipe = hone::read_recipe_text("[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"adam\"\n");
  const hone::plan::Plan plan = hone::compile_model(folder + "/rows.onnx", recipe, {.levels = {"native"}});
  hone::Session session(plan, {.device = "cpu", .threads = 1});
  const double first = train_step(session, 0);
  double last = first;
  for (std::int64_t step = 1; step < 60; ++step) last = train_step(session, step);
  hone::save_trained_model(plan, session, folder + "/trained.onnx");
  std::printf("loss %.4f, then %.4f\n", first, last);
  return last < first / 2 and fit(plan, folder) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    hone::compile_model("/no/such.onnx", hone::Recipe{});
    return 3;
  } catch (const hone::Error& error) {  // crosses the library's border as what it is
    if (error.exit_code() != 7) return 4;
  }
  try {
    return train(argv[1]);
  } catch (const hone::Error& error) { std::fprintf(stderr, "%s\n", error.what()); }
  return 1;
}
