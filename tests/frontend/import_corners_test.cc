// Sizes and numbers at which an operator's import could go wrong without a word: starts that are negative for some sizes, integers that wrap around, halves that do not hold a count.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/frontend/test_model.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor counted(std::vector<std::int64_t> shape) {
  std::vector<float> values(static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
  std::iota(values.begin(), values.end(), 0.0F);
  return f32(std::move(shape), std::move(values));
}
Tensor ones_of(DType dtype, std::vector<std::int64_t> shape, double value = 1) {
  const std::vector<double> values(static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())), value);
  return Tensor::of<double>(std::move(shape), std::span<const double>(values)).cast(dtype);
}

// --- Sizes ---

/// The size of axis 1 of `of`, as "size".
void add_size(TestModel& model, const std::string& of, const std::string& size) {
  model.node("Shape", {of}, {"shape of " + of}).set("start", 1).set("end", 2);
  model.node("Identity", {"shape of " + of}, {size});
}

/// x[:, T - 10:] and x[:, :T - 10].
TEST(Corners, APositionMayCountFromEitherEnd) {
  for (const bool is_start : {true, false}) {
    TestModel model;
    model.input("x", {"N", "T"}).initializer("ten", ints({10})).initializer("zero", ints({0})).initializer("far", ints({INT64_MAX})).initializer("axes", ints({1})).output("y");
    add_size(model, "x", "size");
    model.node("Sub", {"size", "ten"}, {"position"});
    model.node("Slice", is_start ? std::vector<std::string>{"x", "position", "far", "axes"} : std::vector<std::string>{"x", "zero", "position", "axes"}, {"y"});
    const auto numbers = [&](std::int64_t size) { return values_of(model.y(counted({1, size}))); };
    EXPECT_THAT(numbers(4), is_start ? testing::Matcher<std::vector<double>>(ElementsAre(0, 1, 2, 3)) : testing::IsEmpty());
    EXPECT_THAT(numbers(8), is_start ? testing::Matcher<std::vector<double>>(ElementsAre(6, 7)) : ElementsAre(0, 1, 2, 3, 4, 5)) << "-2 counts from the end";
    EXPECT_EQ(numbers(12).size(), is_start ? 10U : 2U);
    EXPECT_EQ(numbers(12)[0], is_start ? 2 : 0);
  }
}

/// x[:, T - K:]: a part of what was given before, of which there is as much.
TEST(Corners, APositionBetweenTwoSizesIsCheckedWhenTheyAreKnown) {
  TestModel model;
  model.input("x", {"N", "T"}).input("q", {"N", "K"}).initializer("far", ints({INT64_MAX})).initializer("axes", ints({1})).output("y");
  add_size(model, "x", "size");
  add_size(model, "q", "other");
  model.node("Sub", {"size", "other"}, {"start"});
  model.node("Slice", {"x", "start", "far", "axes"}, {"y"});
  EXPECT_EQ(model.type(), "f32[N,K]");
  EXPECT_THAT(values_of(model.run({{"x", counted({1, 5})}, {"q", counted({1, 2})}})["y"]), ElementsAre(3, 4));
  EXPECT_THROW(model.run({{"x", counted({1, 5})}, {"q", counted({1, 9})}}), Error);
}

TEST(Corners, PartsOfAnySizeWhereTheirNumberIsGiven) {
  TestModel model(18);
  model.input("x", {"T"}).output("y").output("z");
  model.node("Split", {"x"}, {"y", "z"}).set("num_outputs", 2);
  EXPECT_THAT(values_of(model.run({{"x", counted({7})}})["y"]), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values_of(model.run({{"x", counted({7})}})["z"]), ElementsAre(4, 5, 6));
}

/// Elements of other rows, or of nothing, would be read and written.
TEST(Corners, AnIndexIsNoLongerThanWhatItIndexes) {
  for (const bool scatters : {true, false}) {
    const auto model_of = [&](const Extent& length) {
      TestModel model(18);
      model.input("x", {2, 3}).input("i", {2, length}, DType::kI64).output("y");
      if (scatters) model.input("u", {2, length});
      model.node(scatters ? "ScatterElements" : "GatherElements", scatters ? std::vector<std::string>{"x", "i", "u"} : std::vector<std::string>{"x", "i"}, {"y"}).set("axis", 0);
      return model;
    };
    EXPECT_THAT(problem_of(model_of(5), Code::kShape), HasSubstr("5 are more than 3"));
    const auto run = [&](std::int64_t length) {
      Feeds feeds = {{"x", counted({2, 3})}, {"i", i64({2, length}, std::vector<std::int64_t>(static_cast<std::size_t>(2 * length)))}};
      if (scatters) feeds.emplace("u", counted({2, length}));
      return model_of("K").run(feeds)["y"].shape();
    };
    EXPECT_EQ(run(2)[0], 2);
    EXPECT_THROW(run(5), Error);
  }
}

/// A few nodes, whose sizes would take gigabytes to write down: they are read when running.
TEST(Corners, SizesThatAreTooLongAreNotKnown) {
  TestModel model;
  model.input("x", {"A", "B", "C", "D"}).output("y");
  model.node("Shape", {"x"}, {"shape"});
  model.node("ReduceSum", {"shape"}, {"s0"}).set("keepdims", 1);
  for (int i = 0; i < 6; ++i) model.node("Mul", {"s" + std::to_string(i), "s" + std::to_string(i)}, {"s" + std::to_string(i + 1)});
  model.node("ConstantOfShape", {"s6"}, {"y"});
  EXPECT_THAT(model.type(), HasSubstr("$"));
}

// --- Integers ---

/// Contents of "y", a vector of i64, as inference knows them.
std::vector<double> known(const TestModel& model) { return values_of(model.run({})["y"]); }

TestModel of_constants(DType dtype, const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b, const std::string& op_type) {
  TestModel model;
  model.initializer("a", ints(a).cast(dtype)).initializer("b", ints(b).cast(dtype)).output("y");
  model.node(op_type, {"a", "b"}, {"narrow"});
  model.node("Cast", {"narrow"}, {"y"}).set("to", onnx::TensorProto::INT64);
  return model;
}

TEST(Corners, KnownIntegersWrapAround) {
  EXPECT_THAT(known(of_constants(DType::kI8, {100}, {100}, "Add")), ElementsAre(-56));
  EXPECT_THAT(known(of_constants(DType::kI32, {70'000}, {70'000}, "Mul")), ElementsAre(605'032'704));
  EXPECT_THAT(known(of_constants(DType::kU8, {3}, {5}, "Sub")), ElementsAre(254));
  EXPECT_THAT(known(of_constants(DType::kU64, {-1}, {5}, "Greater")), ElementsAre(1)) << "2^64 - 1";
  EXPECT_THAT(known(of_constants(DType::kI64, {INT64_MIN, 7}, {-1, -7}, "Div")), ElementsAre(static_cast<double>(INT64_MIN), -1));
}

TEST(Corners, KnownIntegersBecomeBools) {
  TestModel model;
  model.initializer("ids", ints({101, 2054, 0, 0})).initializer("axes", ints({0})).output("y");
  model.node("Cast", {"ids"}, {"mask"}).set("to", onnx::TensorProto::BOOL);
  model.node("Cast", {"mask"}, {"counted"}).set("to", onnx::TensorProto::INT64);
  model.node("ReduceSum", {"counted", "axes"}, {"y"});
  EXPECT_THAT(known(model), ElementsAre(2));
}

TEST(Corners, RangesOfLargeIntegers) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 60;
  for (const auto& [limit, delta, count] : {std::tuple(kLarge + 5, std::int64_t{1}, 5), {kLarge + 5, std::int64_t{2}, 3}, {kLarge - 4, std::int64_t{-2}, 2}, {kLarge, std::int64_t{1}, 0}}) {
    TestModel model;
    model.initializer("start", i64({}, {kLarge})).initializer("limit", i64({}, {limit})).initializer("delta", i64({}, {delta})).output("y");
    model.node("Range", {"start", "limit", "delta"}, {"y"});
    const Tensor y = model.run({})["y"];
    ASSERT_EQ(y.shape(), (std::vector<std::int64_t>{count}));
    for (std::int64_t i = 0; i < count; ++i) EXPECT_EQ(y.int_at(i), kLarge + i * delta);
  }
}

TEST(Corners, ShrinksIntegersByFractions) {
  TestModel model;
  model.input("x", {3}, DType::kI32).output("y");
  model.node("Shrink", {"x"}, {"y"}).set("lambd", 1.5).set("bias", 1.5);
  EXPECT_THAT(values_of(model.y(ints({1, 2, 3}).cast(DType::kI32))), ElementsAre(0, 0, 1));
}

TEST(Corners, TheFirstTileCountsInFloats) {
  TestModel model(1);
  model.input("x", {2}).initializer("tiles", f32({1}, {3})).initializer("axis", f32({1}, {0})).output("y");
  model.node("Tile", {"x", "tiles", "axis"}, {"y"});
  EXPECT_THAT(values_of(model.y(f32({2}, {1, 2}))), ElementsAre(1, 2, 1, 2, 1, 2));
}

// --- Halves ---

/// 65,536 is no number of f16, nor 257 one of bf16.
TEST(Corners, MeansOfHalvesOverMoreThanTheyCount) {
  for (const auto& [dtype, extent, value] : {std::tuple(DType::kF16, std::int64_t{65'536}, 3.0), {DType::kBF16, std::int64_t{257}, 1.0}}) {
    TestModel model(13);
    model.input("x", {2, extent}, dtype).output("y");
    model.node("ReduceMean", {"x"}, {"y"}).set("axes", std::vector<std::int64_t>{1}).set("keepdims", 0);
    EXPECT_THAT(values_of(model.y(ones_of(dtype, {2, extent}, value))), ElementsAre(value, value));
  }
}

TEST(Corners, BatchNormalizationOfHalvesMovesItsVariance) {
  TestModel model(15);
  model.input("x", {2, 1, 40'000}, DType::kF16).output("y").output("mean").output("variance");
  for (const char* name : {"scale", "bias", "m", "v"}) model.initializer(name, ones_of(DType::kF16, {1}));
  model.node("BatchNormalization", {"x", "scale", "bias", "m", "v"}, {"y", "mean", "variance"}).set("training_mode", 1).set("momentum", 0.5);
  std::vector<double> values(80'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? 3 : -1;
  GraphResults results = model.run({{"x", Tensor::of<double>({2, 1, 40'000}, std::span<const double>(values)).cast(DType::kF16)}});
  EXPECT_NEAR(results["mean"].at(0), 1, 1e-3);
  EXPECT_NEAR(results["variance"].at(0), 2.5, 1e-2);
  EXPECT_NEAR(results["y"].at(0), 2, 1e-2);
}

TEST(Corners, BatchNormalizationOfHalvesTakesWideStatistics) {
  TestModel model(15);
  model.input("x", {1, 2, 2}, DType::kF16).output("y");
  for (const auto& [name, values] : {std::pair("scale", std::vector<float>{1, 2}), {"bias", {0, 1}}, {"mean", {1, 2}}, {"variance", {1, 4}}}) model.initializer(name, f32({2}, values));
  model.node("BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, {"y"}).set("epsilon", 0.0);
  EXPECT_EQ(model.type(), "f16[1,2,2]");
  EXPECT_THAT(values_of(model.y(f32({1, 2, 2}, {0, 2, 4, 8}).cast(DType::kF16))), ElementsAre(-1, 1, 3, 7));
}

/// A kernel would find nothing there and say nothing: embeddings of a table that was cut would be zeros.
TEST(Corners, ConstantIndicesMustBeThere) {
  const auto of = [](const char* op, const Tensor& index, bool scatters = false) {
    TestModel model(17);
    model.input("x", {3, "N"}).initializer("index", index).output("y");
    if (scatters) model.input("updates", {2, "N"});
    model.node(op, scatters ? std::vector<std::string>{"x", "index", "updates"} : std::vector<std::string>{"x", "index"}, {"y"});
    return model;
  };
  for (const auto& [op, scatters] : {std::pair("Gather", false), {"GatherElements", false}, {"GatherND", false}, {"ScatterElements", true}, {"ScatterND", true}})
    for (const std::int64_t beyond : {3, -4}) {
      EXPECT_THAT(problem_of(of(op, i64({2, 1}, {0, beyond}), scatters), Code::kBadWeight), HasSubstr(fmt::format("its index has {}, and what it indexes has an extent of 3", beyond))) << op;
      EXPECT_NO_THROW(of(op, i64({2, 1}, {2, -3}), scatters).import()) << op;
    }
  std::vector<std::int64_t> many(100, 0);
  many.back() = 7;
  EXPECT_THAT(problem_of(of("Gather", ints(many)), Code::kBadWeight), HasSubstr("its index has 7"));
  // The second number of a position is of an axis whose size is not known.
  EXPECT_NO_THROW(of("GatherND", i64({1, 2}, {2, 100})).import());
}

}  // namespace
}  // namespace hone::test
