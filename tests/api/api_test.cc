// What a C++ program does with Hone, from one header: build, save, compile, train, save again.
#include <gtest/gtest.h>

#include <cmath>

#include "api/hone.h"
#include "base/files.h"
#include "base/philox.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

constexpr std::int64_t kBatch = 32;

/// Points of the plane, labelled by whether they lie in the unit circle.
std::pair<Tensor, Tensor> circle_batch(std::uint64_t number) {
  std::vector<float> x;
  std::vector<std::int64_t> y;
  for (std::uint64_t i = 0; i < kBatch; ++i) {
    const auto [a, b] = philox_uniform(7, number, i);
    x.push_back(static_cast<float>(3 * a - 1.5));
    x.push_back(static_cast<float>(3 * b - 1.5));
    y.push_back(std::hypot(x[2 * i], x[2 * i + 1]) < 1);
  }
  return {Tensor::of<float>({kBatch, 2}, std::span<const float>(x)), Tensor::of<std::int64_t>({kBatch}, std::span<const std::int64_t>(y))};
}

void build(const std::string& path) {
  nn::Model model("circle");
  nn::Value x = model.input("point", {2});
  x = nn::tanh(nn::dense(x, 16));
  model.output("logits", nn::dense(x, 2));
  save_model(model, path);
}

double train(Session& session, int steps) {
  const Tensor rate = Tensor::scalar(0.05);
  double loss = 0;
  for (int step = 0; step < steps; ++step) {
    const auto [x, y] = circle_batch(static_cast<std::uint64_t>(step));
    const std::pair<std::string, TensorView> feeds[] = {{"point", x}, {"target", y}, {"learning_rate", rate}};
    session.run(plan::kTrainStep, feeds);
    loss = session.result_tensor(plan::kLossSum).at(0) / session.result_tensor(plan::kTargetCount).at(0);
  }
  return loss;
}

Tensor predict(Session& session) {
  const Tensor x = circle_batch(1000).first;
  const std::pair<std::string, TensorView> feeds[] = {{"point", x}};
  session.run(plan::kPredict, feeds);
  return session.result_tensor("logits");
}

/// Exporters store a layer's matrix as [out,in] or as [in,out]: the update is that of the layer.
TEST(Api, MuonUpdatesALayerTheSameInEitherLayout) {
  constexpr std::int64_t kIn = 3, kOut = 8;
  std::vector<float> elements, turned;
  for (std::int64_t i = 0; i < kIn * kOut; ++i) elements.push_back(static_cast<float>(std::sin(i)));
  for (std::int64_t o = 0; o < kOut; ++o)
    for (std::int64_t i = 0; i < kIn; ++i) turned.push_back(elements[static_cast<std::size_t>(i * kOut + o)]);
  const Recipe recipe = read_recipe_text("[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"muon\"\n");
  const auto trained = [&](bool outputs_first) {
    nn::Model model("layer");
    const nn::Value x = model.input("x", {kIn}), w = model.weight("w", outputs_first ? Tensor::of<float>({kOut, kIn}, std::span<const float>(turned)) : Tensor::of<float>({kIn, kOut}, std::span<const float>(elements)));
    model.output("y", nn::matmul(x, w, outputs_first));
    Session session(compile_model(model, recipe, {.levels = {"native"}}), {.device = "cpu", .threads = 1});
    const Tensor data = Tensor::of<float>({2, kIn}, std::vector<float>{1, 2, 3, -1, 0.5F, 2}), target = Tensor::zeros(DType::kF32, {2, kOut}), rate = Tensor::scalar(0.1);
    for (int step = 0; step < 3; ++step) {
      const std::pair<std::string, TensorView> feeds[] = {{"x", data}, {"target", target}, {"learning_rate", rate}};
      session.run(plan::kTrainStep, feeds);
    }
    return session.read("w");
  };
  const Tensor first = trained(true), last = trained(false);
  for (std::int64_t o = 0; o < kOut; ++o)
    for (std::int64_t i = 0; i < kIn; ++i) EXPECT_NEAR(first.at(o * kIn + i), last.at(i * kOut + o), 1e-5) << o << ", " << i;
}

/// What a run gave may be fed to the next one, although it lies where that one writes.
TEST(Api, FeedsAResultBack) {
  nn::Model model("loop");
  nn::Value h = model.input("h", {16});
  for (int layer = 0; layer < 3; ++layer) h = nn::tanh(nn::dense(h, 16));
  model.output("next", h);
  const plan::Plan plan = compile_model(model, {}, {.levels = {"native"}});
  Session by_view(plan, {.device = "cpu", .threads = 1}), by_copy(plan, {.device = "cpu", .threads = 1});
  std::vector<float> first(64);
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<float>(std::sin(i));
  const Tensor start = Tensor::of<float>({4, 16}, std::span<const float>(first));
  for (Session* session : {&by_view, &by_copy}) {
    const std::pair<std::string, TensorView> feeds[] = {{"h", start}};
    session->run(plan::kPredict, feeds);
  }
  for (int i = 0; i < 5; ++i) {
    const std::pair<std::string, TensorView> view[] = {{"h", by_view.result("next")}};
    by_view.run(plan::kPredict, view);
    const Tensor copied = by_copy.result_tensor("next");
    const std::pair<std::string, TensorView> copy[] = {{"h", copied}};
    by_copy.run(plan::kPredict, copy);
    const Tensor a = by_view.result_tensor("next"), b = by_copy.result_tensor("next");
    ASSERT_TRUE(std::ranges::equal(a.bytes(), b.bytes())) << "after " << i + 2 << " runs";
  }
}

/// Along its gradient a point's loss grows.
TEST(Api, GivesGradientsOfTheLoss) {
  const hone::test::TempFolder folder;
  build(folder / "circle.onnx");
  Recipe recipe;
  recipe.loss.kind = "softmax_cross_entropy";
  Session session(compile_gradients(folder / "circle.onnx", recipe, "loss", {"point", "dense/kernel"}), {});
  const auto [x, y] = circle_batch(0);
  const auto loss_at = [&, target = y](const Tensor& point) {
    const std::pair<std::string, TensorView> feeds[] = {{"point", point}, {"target", target}};
    session.run(plan::kPredict, feeds);
    return session.result_tensor("loss").at(0);
  };
  const double before = loss_at(x);
  const Tensor gradient = session.result_tensor("point_grad");
  ASSERT_EQ(gradient.shape(), x.shape());
  EXPECT_EQ(session.result_tensor("dense/kernel_grad").shape(), (std::vector<std::int64_t>{2, 16}));
  double squares = 0;
  std::vector<float> along;
  for (std::int64_t i = 0; i < x.element_count(); ++i) {
    squares += gradient.at(i) * gradient.at(i);
    along.push_back(static_cast<float>(x.at(i) + 0.1 * gradient.at(i)));
  }
  EXPECT_NEAR(loss_at(Tensor::of<float>(x.shape(), along)) - before, 0.1 * squares, 0.02 * squares);
}

TEST(Api, BuildsCompilesTrainsAndSavesAModel) {
  const hone::test::TempFolder folder;
  build(folder / "circle.onnx");
  const Recipe recipe = read_recipe_text("[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"adam\"\nlearning_rate = 0.05\n");
  const plan::Plan plan = compile_model(folder / "circle.onnx", recipe);
  Session session(plan, {.device = "cpu", .threads = 1});
  const double first = train(session, 1);
  EXPECT_LT(train(session, 300), first / 3);
  save_trained_model(plan, session, folder / "trained.onnx");

  // The trained file compiles like any other, and says the same.
  const plan::Plan again = compile_model(folder / "trained.onnx", Recipe{}, {.levels = {"native"}});
  Session reader(again, {.device = "cpu", .threads = 1});
  EXPECT_FALSE(reader.has_entry(plan::kTrainStep));
  const Tensor expected = predict(session), found = predict(reader);
  ASSERT_EQ(expected.shape(), found.shape());
  for (std::int64_t i = 0; i < expected.element_count(); ++i) EXPECT_EQ(expected.at(i), found.at(i));
}

/// What Keras calls add_loss: here a sequence is taken apart and put together again, and what lies between is kept small.
TEST(Api, TrainsALossOfSeveralParts) {
  const hone::test::TempFolder folder;
  constexpr std::int64_t kSteps = 8, kFeatures = 3;
  nn::Model model("parts");
  const nn::Value x = model.input("x", {kSteps, kFeatures}), y = model.input("wanted", {kFeatures, kSteps});
  const nn::Value both = nn::lstm(x, 4, {.return_sequences = true, .bidirectional = true});
  const nn::Value code = nn::separable_conv(nn::permute(nn::cross_attention(both, x, 2), {2, 1}), 5, 3, {.stride = 2, .same = true});
  const nn::Value made = nn::conv_transpose(nn::silu(code), kFeatures, 4, {.stride = 2, .same = true}), error = made - y;
  model.output("made", made);
  model.output("loss", nn::mean(error * error) + 0.01 * nn::mean(nn::abs(code)));
  save_model(model, folder / "parts.onnx");
  const plan::Plan plan = compile_model(folder / "parts.onnx", read_recipe_text("[model]\noutput = \"loss\"\n[loss]\nkind = \"output\"\n[optimizer]\nkind = \"adam\"\nlearning_rate = 0.01\n"), {.levels = {"native"}});
  Trainer trainer(plan, {.device = "cpu", .threads = 1});
  std::vector<float> numbers;
  for (std::uint64_t i = 0; i < 64 * kSteps * kFeatures; ++i) numbers.push_back(static_cast<float>(philox_uniform(3, 0, i).first));
  const Tensor samples = Tensor::of<float>({64, kSteps, kFeatures}, std::span<const float>(numbers));
  const Dataset data = Dataset::from_tensor_slices({{"x", samples}, {"wanted", samples.reshaped({64, kFeatures, kSteps})}}).batch(16);
  const auto loss = [&] { return value_of(trainer.evaluate(data), "loss"); };
  const double before = loss();
  trainer.fit(data, {.epochs = 40, .quiet = true});
  EXPECT_LT(loss(), before / 2);
}

TEST(Api, SaysWhatIsWrongWithALayer) {
  nn::Model model("wrong");
  const nn::Value x = model.input("x", {5});
  try {
    nn::conv(x, 4, 3);
    FAIL() << "a convolution without a spatial axis was built";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("conv: its input [N,5] has no spatial axis"), std::string::npos) << error.what();
  }
}

TEST(Api, SavedPlansWorkLikeFreshOnes) {
  const hone::test::TempFolder folder;
  build(folder / "circle.onnx");
  plan::save(compile_model(folder / "circle.onnx", Recipe{}, {.levels = {"native"}}), folder / "circle.hone");
  const plan::Plan plan = plan::load(folder / "circle.hone");
  Session session(plan, {.device = "cpu", .threads = 1});
  EXPECT_EQ(predict(session).shape(), (std::vector<std::int64_t>{kBatch, 2}));
}

}  // namespace
}  // namespace hone
