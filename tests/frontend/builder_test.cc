// Layers of the C++ builder: what they compute, against formulas written out here, and that the ONNX file that they become computes the same.
#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/frontend/built_model.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

TEST(Builder, GeluIsXTimesTheNormalDistributionBelowIt) {
  nn::Model model("gelu");
  model.output("y", nn::gelu(model.input("x", {4})));
  const Tensor x = f32({1, 4}, {-1, 0, 0.5, 2});
  Numbers expected;
  for (const double v : values_of(x)) expected.push_back(v * 0.5 * (1 + std::erf(v / std::sqrt(2.0))));
  expect_near(output_of(model, x), expected);
}

TEST(Builder, LayerNormHasMeanZeroAndVarianceOne) {
  for (const bool use_bias : {true, false}) {
    nn::Model model("norm");
    model.output("y", nn::layer_norm(model.input("x", {2, 4}), {.epsilon = 1e-3, .use_bias = use_bias}));
    const Tensor x = wavy({1, 2, 4});
    Numbers expected;
    const Numbers values = values_of(x);
    for (std::size_t row = 0; row < 2; ++row) {
      double mean = 0, variance = 0;
      for (std::size_t i = 0; i < 4; ++i) mean += values[row * 4 + i] / 4;
      for (std::size_t i = 0; i < 4; ++i) variance += std::pow(values[row * 4 + i] - mean, 2) / 4;
      for (std::size_t i = 0; i < 4; ++i) expected.push_back((values[row * 4 + i] - mean) / std::sqrt(variance + 1e-3));
    }
    expect_near(output_of(model, x), expected);
    EXPECT_EQ(model.graph().find_input("layer_norm/beta") != nullptr, use_bias);
  }
}

TEST(Builder, SumIsOfAllElementsOfEachSample) {
  nn::Model model("sum");
  model.output("y", nn::sum(model.input("x", {2, 3})));
  expect_near(output_of(model, f32({2, 2, 3}, {1, 2, 3, 4, 5, 6, -1, 0.5, 0, 0, 0, 2})), {21, 1.5});
  nn::Model other("sum");
  EXPECT_THROW(nn::sum(other.input("x", {})), Error) << "one element a sample";
}

TEST(Builder, PaddingIsNeitherTheLargestNorCounted) {
  nn::Model model("pool");
  const nn::Value x = model.input("x", {1, 4});
  model.output("y", nn::max_pool(x, 3, {.stride = 2, .padding = 1}) - nn::average_pool(x, 3, {.stride = 2, .padding = 1}));
  expect_near(output_of(model, f32({1, 1, 4}, {-3, -1, -2, -6})), {-1 - (-2), -1 - (-3)});
}

TEST(Builder, AFunctionMayMakeAModel) {
  std::optional<nn::Value> hidden;
  const auto made = [&](bool twice) {
    nn::Model model("made"), other("other");
    hidden = nn::relu(model.input("x", {2}));
    if (twice) other = std::move(model);
    return twice ? std::move(other) : std::move(model);
  };
  for (const bool twice : {false, true}) {
    nn::Model model = made(twice);
    EXPECT_EQ(&hidden->model(), &model);
    model.output("y", *hidden * 2);
    expect_near(output_of(model, f32({1, 2}, {-1, 3})), {0, 6});
    const nn::Model next = std::move(model);
    EXPECT_EQ(next.graph().name, "made");
    test::expect_error(Code::kUsage, "a model is used that was moved from", [&] { model.input("z", {1}); });  // NOLINT(bugprone-use-after-move)
  }
}

TEST(Builder, AWeightMayBeUsedByManyLayers) {
  nn::Model model("tied");
  const nn::Value table = model.weight("table", {3, 2}, nn::Initializer::uniform(1));
  model.output("y", nn::matmul(nn::embedding(model.input("x", {2}, DType::kI32), table), table, true));
  const Numbers w = weight_values(model, "table");
  Numbers expected;
  for (const std::size_t id : {2, 0})
    for (std::size_t k = 0; k < 3; ++k) expected.push_back(w[id * 2] * w[k * 2] + w[id * 2 + 1] * w[k * 2 + 1]);
  expect_near(output_of(model, i64({1, 2}, {2, 0}).cast(DType::kI32)), expected);
  EXPECT_EQ(std::ranges::count_if(model.graph().inputs(), [](const Input& input) { return input.role == Role::kWeight; }), 1);
}

/// Self-attention of one sample x[positions,size], from the formula.
Numbers attention_by_hand(const nn::Model& model, const Numbers& x, std::size_t positions, std::size_t size, std::size_t heads, bool is_causal) {
  const Numbers qkv = product(x, weight_values(model, "self_attention/qkv_kernel"), size);
  const std::size_t each = size / heads;
  const auto element = [&](std::size_t part, std::size_t position, std::size_t head, std::size_t i) { return qkv[position * 3 * size + part * size + head * each + i]; };
  Numbers attended(positions * size);
  for (std::size_t head = 0; head < heads; ++head)
    for (std::size_t from = 0; from < positions; ++from) {
      Numbers share(positions);
      double all = 0;
      for (std::size_t to = 0; to < positions; ++to) {
        double score = 0;
        for (std::size_t i = 0; i < each; ++i) score += element(0, from, head, i) * element(1, to, head, i);
        all += share[to] = is_causal and to > from ? 0 : std::exp(score / std::sqrt(static_cast<double>(each)));
      }
      for (std::size_t to = 0; to < positions; ++to)
        for (std::size_t i = 0; i < each; ++i) attended[from * size + head * each + i] += share[to] / all * element(2, to, head, i);
    }
  return product(attended, weight_values(model, "self_attention/projection_kernel"), size);
}

TEST(Builder, SelfAttentionFollowsTheFormula) {
  for (const bool is_causal : {false, true}) {
    nn::Model model("attention");
    model.output("y", nn::self_attention(model.input("x", {5, 6}), 2, {.is_causal = is_causal, .use_bias = not is_causal}));
    const Tensor x = wavy({1, 5, 6});
    expect_near(output_of(model, x), attention_by_hand(model, values_of(x), 5, 6, 2, is_causal));
  }
}

/// The states after every step of one sample x[steps,in].
Numbers lstm_by_hand(const nn::Model& model, const Numbers& x, std::size_t in, std::size_t units, const std::string& weights = "lstm/") {
  const Numbers inputs = product(x, weight_values(model, weights + "kernel"), in), recurrent = weight_values(model, weights + "recurrent_kernel"), bias = weight_values(model, weights + "bias");
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  Numbers hidden(units), cell(units), all;
  for (std::size_t step = 0; step < x.size() / in; ++step) {
    const Numbers from_state = product(hidden, recurrent, units);
    const auto gate = [&](std::size_t number, std::size_t i) {
      const std::size_t at = number * units + i;
      return inputs[step * 4 * units + at] + from_state[at] + bias[at];
    };
    for (std::size_t i = 0; i < units; ++i) {
      cell[i] = sigmoid(gate(1, i)) * cell[i] + sigmoid(gate(0, i)) * std::tanh(gate(2, i));
      hidden[i] = sigmoid(gate(3, i)) * std::tanh(cell[i]);
    }
    all.insert(all.end(), hidden.begin(), hidden.end());
  }
  return all;
}

TEST(Builder, LstmFollowsTheFormula) {
  for (const bool return_sequences : {false, true}) {
    nn::Model model("lstm");
    model.output("y", nn::lstm(model.input("x", {4, 3}), 2, {.return_sequences = return_sequences}));
    const Tensor x = wavy({1, 4, 3});
    Numbers expected = lstm_by_hand(model, values_of(x), 3, 2);
    if (not return_sequences) expected.erase(expected.begin(), expected.end() - 2);
    expect_near(output_of(model, x), expected);
    EXPECT_EQ(weight_values(model, "lstm/bias"), (Numbers{0, 0, 1, 1, 0, 0, 0, 0}));
  }
}

TEST(Builder, LstmTakesAnyBatch) {
  nn::Model model("lstm");
  model.output("y", nn::lstm(model.input("x", {4, 3}), 2));
  const Tensor x = wavy({2, 4, 3});
  const Numbers both = values_of(output_of(model, x)), values = values_of(x);
  const Numbers second = lstm_by_hand(model, {values.begin() + 12, values.end()}, 3, 2);
  EXPECT_NEAR(both[2], second[6], 2e-6);
  EXPECT_NEAR(both[3], second[7], 2e-6);
}

/// The states after every step of one sample x[steps,in].
Numbers gru_by_hand(const nn::Model& model, const Numbers& x, std::size_t in, std::size_t units, bool reset_after, const std::string& weights = "gru/") {
  const Numbers inputs = product(x, weight_values(model, weights + "kernel"), in), recurrent = weight_values(model, weights + "recurrent_kernel"), bias = weight_values(model, weights + "bias");
  const std::size_t width = 3 * units;
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  Numbers hidden(units), all;
  for (std::size_t step = 0; step < x.size() / in; ++step) {
    const Numbers from_state = product(hidden, recurrent, units);
    const auto of_input = [&](std::size_t gate, std::size_t i) { return inputs[step * width + gate * units + i] + bias[gate * units + i]; };
    const auto of_state = [&](std::size_t gate, std::size_t i) { return from_state[gate * units + i] + (reset_after ? bias[width + gate * units + i] : 0); };
    Numbers update(units), reset(units), partly(units), next(units);
    for (std::size_t i = 0; i < units; ++i) {
      update[i] = sigmoid(of_input(0, i) + of_state(0, i));
      reset[i] = sigmoid(of_input(1, i) + of_state(1, i));
      partly[i] = reset[i] * hidden[i];
    }
    const Numbers from_part = product(partly, recurrent, units);
    for (std::size_t i = 0; i < units; ++i) {
      const double remembered = reset_after ? reset[i] * of_state(2, i) : from_part[2 * units + i];
      next[i] = update[i] * hidden[i] + (1 - update[i]) * std::tanh(of_input(2, i) + remembered);
    }
    hidden = next;
    all.insert(all.end(), hidden.begin(), hidden.end());
  }
  return all;
}

TEST(Builder, GruFollowsTheFormula) {
  for (const bool reset_after : {true, false})
    for (const bool return_sequences : {false, true}) {
      nn::Model model("gru");
      model.output("y", nn::gru(model.input("x", {4, 3}), 2, {.return_sequences = return_sequences, .reset_after = reset_after, .bias_initializer = nn::Initializer::uniform(1)}));
      const Tensor x = wavy({1, 4, 3});
      Numbers expected = gru_by_hand(model, values_of(x), 3, 2, reset_after);
      if (not return_sequences) expected.erase(expected.begin(), expected.end() - 2);
      expect_near(output_of(model, x), expected);
    }
  nn::Model without("gru");
  without.output("y", nn::gru(without.input("x", {4, 3}), 2, {.use_bias = false}));
  EXPECT_EQ(without.graph().find_input("gru/bias"), nullptr);
  EXPECT_EQ(output_of(without, wavy({2, 4, 3})).shape(), (std::vector<std::int64_t>{2, 2}));
}

/// Rows of `width` elements from the last to the first.
Numbers backwards(const Numbers& rows, std::size_t width) {
  Numbers result;
  for (std::size_t i = rows.size() / width; i-- > 0;) result.insert(result.end(), rows.begin() + static_cast<std::ptrdiff_t>(i * width), rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
  return result;
}

/// As Keras's Bidirectional has it: side by side at each step, or the last state of each way.
TEST(Builder, RecurrentLayersMayGoBothWays) {
  constexpr std::size_t kSteps = 4, kIn = 3, kUnits = 2;
  const Tensor x = wavy({1, kSteps, kIn});
  for (const bool is_lstm : {true, false})
    for (const bool return_sequences : {false, true}) {
      nn::Model model("both");
      const nn::Value input = model.input("x", {kSteps, kIn});
      model.output("y", is_lstm ? nn::lstm(input, kUnits, {.return_sequences = return_sequences, .bidirectional = true})
                                : nn::gru(input, kUnits, {.return_sequences = return_sequences, .bidirectional = true, .bias_initializer = nn::Initializer::uniform(1)}));
      const auto by_hand = [&](const Numbers& steps, const std::string& way) {
        return is_lstm ? lstm_by_hand(model, steps, kIn, kUnits, "lstm/" + way) : gru_by_hand(model, steps, kIn, kUnits, true, "gru/" + way);
      };
      const Numbers there = by_hand(values_of(x), ""), back = backwards(by_hand(backwards(values_of(x), kIn), "backward_"), kUnits);
      Numbers expected;
      for (std::size_t step = 0; step < kSteps; ++step)
        for (const Numbers* way : {&there, &back}) expected.insert(expected.end(), way->begin() + static_cast<std::ptrdiff_t>(step * kUnits), way->begin() + static_cast<std::ptrdiff_t>((step + 1) * kUnits));
      if (not return_sequences) expected = {there[there.size() - 2], there.back(), back[0], back[1]};
      expect_near(output_of(model, x), expected);
    }
}

TEST(Builder, ConcatPutsOneBehindTheOther) {
  for (const std::int64_t axis : {-1, 2, 1}) {
    nn::Model model("concat");
    const nn::Value x = model.input("x", {1, 2});
    model.output("y", nn::concat({x, nn::relu(x), x}, axis));
    const Tensor y = output_of(model, f32({1, 1, 2}, {-3, 4}));
    EXPECT_EQ(y.shape(), axis == 1 ? (std::vector<std::int64_t>{1, 3, 2}) : (std::vector<std::int64_t>{1, 1, 6}));
    expect_near(y, {-3, 4, 0, 4, -3, 4});
  }
}

TEST(Builder, DropoutKeepsItsShareInTrainingAndAllElsewhere) {
  constexpr std::int64_t kElements = 10'000;
  nn::Model model("dropout");
  model.output("y", nn::dropout(model.input("x", {kElements}), 0.25));
  const std::vector<float> ones(kElements, 1);
  const Tensor x = Tensor::of<float>({1, kElements}, std::span<const float>(ones));
  const Numbers y = values_of(output_of(model, x));
  const auto kept = std::ranges::count_if(y, [](double value) { return std::fabs(value - 1 / 0.75) < 1e-6; });
  EXPECT_EQ(std::ranges::count(y, 0.0) + kept, kElements);
  EXPECT_NEAR(static_cast<double>(kept), 0.75 * kElements, 200);
  Graph predicting = model.graph().clone();
  (void)remove_dropout(predicting);
  EXPECT_EQ(values_of(output_of(predicting, {{"x", x}})), values_of(x));

  nn::Model twice("dropout");
  const nn::Value in = twice.input("x", {kElements});
  twice.output("y", nn::dropout(in, 0.5) - nn::dropout(in, 0.5));
  EXPECT_GT(std::ranges::count(values_of(output_of(twice, x)), 2.0), kElements / 5) << "each draws for itself";
}

TEST(Builder, OneValueMayBeSeveralOutputs) {
  nn::Model model("twice");
  const nn::Value x = model.input("x", {2}), y = nn::relu(x);
  model.output("y", y);
  model.output("again", y);
  model.output("as it is", x);
  const onnx::Imported imported = onnx::import_model(onnx::export_model(model.graph()), "model.onnx", ".", {});
  const GraphResults results = interpret(imported.graph, {{"x", f32({1, 2}, {-1, 2})}});
  for (const char* name : {"y", "again"}) EXPECT_EQ(values_of(results[name]), (Numbers{0, 2})) << name;
  EXPECT_EQ(values_of(results["as it is"]), (Numbers{-1, 2}));
}

TEST(Builder, InitializersHaveTheirDistributions) {
  nn::Model model("weights");
  const auto drawn = [&](const char* name, const nn::Initializer& initializer, std::vector<std::int64_t> shape) {
    model.weight(name, std::move(shape), initializer);
    return weight_values(model, name);
  };
  const auto mean_square = [](const Numbers& values) {
    double sum = 0;
    for (const double v : values) sum += v * v;
    return sum / static_cast<double>(values.size());
  };
  const Numbers normal = drawn("normal", nn::Initializer::normal(0.5), {100, 100}), uniform = drawn("uniform", nn::Initializer::uniform(0.5), {100, 100});
  EXPECT_NEAR(mean_square(normal), 0.25, 0.01);
  EXPECT_GT(*std::ranges::max_element(normal), 1.2);
  EXPECT_NEAR(mean_square(uniform), 0.25 / 3, 0.005);
  EXPECT_LE(*std::ranges::max_element(uniform), 0.5);
  const Numbers conv = drawn("conv", nn::Initializer::glorot_uniform(), {10, 20, 3, 3});
  EXPECT_NEAR(*std::ranges::max_element(conv), std::sqrt(6.0 / (30 * 9)), 1e-3) << "fans count the window";
  EXPECT_EQ(drawn("constant", nn::Initializer::constant(3), {2}), (Numbers{3, 3}));
}

TEST(Builder, OrthogonalRowsOrColumns) {
  for (const std::size_t rows : {3, 7}) {
    nn::Model model("weights");
    model.weight("w", {static_cast<std::int64_t>(rows), 5}, nn::Initializer::orthogonal());
    const Numbers w = weight_values(model, "w");
    const bool by_row = rows <= 5;
    const std::size_t count = by_row ? rows : 5, length = by_row ? 5 : rows;
    const auto at = [&](std::size_t vector, std::size_t i) { return by_row ? w[vector * 5 + i] : w[i * 5 + vector]; };
    for (std::size_t a = 0; a < count; ++a)
      for (std::size_t b = 0; b < count; ++b) {
        double dot = 0;
        for (std::size_t i = 0; i < length; ++i) dot += at(a, i) * at(b, i);
        EXPECT_NEAR(dot, a == b ? 1 : 0, 1e-6);
      }
  }
}

TEST(Builder, SaysWhatDoesNotFit) {
  nn::Model model("wrong");
  const nn::Value x = model.input("x", {5, 6}), ids = model.input("ids", {5}, DType::kI32);
  const auto refused = [](Code code, const std::string& part, const std::function<void()>& build) { expect_error(code, part, build); };
  refused(Code::kShape, "self_attention: 4 heads do not divide 6 features", [&] { nn::self_attention(x, 4); });
  refused(Code::kShape, "must have three axes: samples, positions, features", [&] { nn::self_attention(nn::flatten(x), 2); });
  refused(Code::kShape, "is_causal needs a number of positions", [&] {
    const nn::Value any = model.input("any", {Dim::symbol("T"), 6});
    nn::self_attention(any, 2, {.is_causal = true});
  });
  refused(Code::kShape, "lstm: its input [N,30] must have three axes", [&] { nn::lstm(nn::flatten(x), 2); });
  refused(Code::kShape, "gru: its input [N,30] must have three axes", [&] { nn::gru(nn::flatten(x), 2); });
  refused(Code::kShape, "concat: its input [N,5,6] has no axis 3 beside that of the samples", [&] { nn::concat({x, x}, 3); });
  refused(Code::kShape, "has no axis 0 beside", [&] { nn::concat({x, x}, 0); });
  refused(Code::kShape, "concat", [&] { nn::concat({x, model.input("longer", {7, 6})}); });
  refused(Code::kUsage, "concat: there are no values", [&] { nn::concat({}); });
  refused(Code::kShape, "dropout: the rate is 1", [&] { nn::dropout(x, 1); });
  refused(Code::kShape, "its table [N,5,6] must have two axes", [&] { nn::embedding(ids, x); });
  refused(Code::kShape, "an orthogonal weight is a matrix, not one of 3 axes", [&] { model.weight("cube", {2, 2, 2}, nn::Initializer::orthogonal()); });
  refused(Code::kType, "weight \"whole\" is i64, and must be f32", [&] { model.weight("whole", i64({1}, {1})); });
  refused(Code::kBadGraph, "already", [&] { model.weight("x", {2}); });
  refused(Code::kTooLarge, "a tensor of shape [-3] has an extent below 0", [&] { model.weight("negative", {-3}); });
  refused(Code::kShape, "samples of the input \"empty\" are [3,0], which has no elements", [&] { model.input("empty", {3, 0}); });
  refused(Code::kBadGraph, "an input without a name", [&] { model.input("", {3}); });
  refused(Code::kBadGraph, "a weight without a name", [&] { model.weight("", {3}); });
  refused(Code::kBadGraph, "an output without a name", [&] { model.output("", x); });
  const nn::Value image = model.input("image", {1, 4, 4});
  refused(Code::kShape, "max_pool: the padding is 3, and the window's extent 2", [&] { nn::max_pool(image, 2, {.padding = 3}); });
  refused(Code::kShape, "average_pool_1: the padding is 2, and the window's extent 2", [&] {
    nn::average_pool(image, 2, {.padding = 1});
    nn::average_pool(image, 2, {.padding = 2});
  });
  refused(Code::kShape, "batch_norm: the momentum is 2", [&] { nn::batch_norm(x, 2); });
  refused(Code::kShape, "epsilon is -1", [&] { nn::batch_norm(x, 0.9, -1); });
  refused(Code::kShape, "epsilon is nan", [&] { nn::batch_norm(x, 0.9, std::nan("")); });
  refused(Code::kShape, "layer_norm: epsilon is -1", [&] { nn::layer_norm(x, {.epsilon = -1}); });
  refused(Code::kUsage, "an initializer draws by nan", [&] { model.weight("n", {3}, nn::Initializer::normal(std::nan(""))); });
  refused(Code::kUsage, "an initializer draws by -1", [&] { model.weight("u", {3}, nn::Initializer::uniform(-1)); });
  refused(Code::kUsage, "an initializer draws by nan", [&] { model.weight("c", {3}, nn::Initializer::constant(std::nan(""))); });
}

}  // namespace
}  // namespace hone::test
