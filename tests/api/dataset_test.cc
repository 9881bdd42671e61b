// A model trained on a data set that the program makes: generated, mapped, shuffled, batched.
#include <gtest/gtest.h>

#include <cmath>

#include "api/hone.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

/// Points of the plane, labelled by whether they lie in the unit circle: 640 of them, as text first.
Dataset circle() {
  const auto points = [] {
    return [i = std::uint64_t{0}]() mutable -> std::optional<Example> {
      if (i == 640) return std::nullopt;
      RandomWords words(7, i++);
      const auto coordinate = [&] { return std::to_string(static_cast<double>(words.below(3000)) / 1000 - 1.5); };
      return Example{{"line", text_tensor(coordinate() + " " + coordinate())}};
    };
  };
  const auto read = [](Example example) -> Example {
    const auto words = split_words(text_of(tensor_of(example, "line")));
    const std::vector<float> point = {std::stof(std::string(words.at(0))), std::stof(std::string(words.at(1)))};
    return {{"x", Tensor::of<float>({2}, std::span(point))}, {"y", Tensor::scalar<std::int64_t>(std::hypot(point[0], point[1]) < 1)}};
  };
  return Dataset::from_generator(points).map(read, {.threads = 2}).cache();
}

TEST(ApiDataset, TrainsAModelTheSameForAnyNumberOfThreads) {
  const hone::test::TempFolder folder;
  nn::Model model("circle");
  model.output("logits", nn::dense(nn::tanh(nn::dense(model.input("point", {2}), 16)), 2));
  save_model(model, folder / "circle.onnx");
  const plan::Plan plan = compile_model(folder / "circle.onnx", read_recipe_text("[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"adam\"\n"), {.levels = {"native"}});
  const auto train = [&](const Dataset& batches) {
    Session session(plan, {.device = "cpu", .threads = 1});
    const double rate = 0.02;
    DatasetBatches source(session.entry(plan::kTrainStep), batches,
                          {.flag = "the data set", .batch_symbol = plan.batch_symbol, .pre_batched = false, .scale = {}});
    source.add_feed("learning_rate", {DType::kF64, {}, &rate});
    double loss = 0;
    for (std::int64_t epoch = 0; epoch < 10; ++epoch) {
      source.start_epoch(epoch);
      while (source.next()) {
        session.run(plan::kTrainStep, source.feeds());
        loss = session.result_tensor(plan::kLossSum).at(0) / session.result_tensor(plan::kTargetCount).at(0);
      }
    }
    return loss;
  };
  const double expected = train(circle().shuffle(100, 3).batch(32));
  EXPECT_LT(expected, 0.3);
  EXPECT_EQ(train(circle().shuffle(100, 3).batch(32).prefetch()), expected);
  EXPECT_NE(train(circle().shuffle(100, 4).batch(32)), expected);
}

}  // namespace
}  // namespace hone
