// Kernels over tensors in panels compute what they compute over rows; weights lie so where all that touches them can, and are read and written as if they did not.
#include "backends/panels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "api/hone.h"
#include "backends/compile.h"
#include "backends/llvm/blocking.h"
#include "backends/panel_kernels.h"
#include "frontend/onnx/import.h"
#include "ir/kernel/interpret.h"
#include "tests/backends/kernel_case.h"
#include "tests/backends/product_kernel.h"
#include "tests/support/host_level.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

const Dim kBatch = Dim::symbol("N");
constexpr std::int64_t kPanelSizes[] = {1, 33};

/// y[n, c] = sum over k of x[n, k] * w[k, c], with w as operand 1; `back` the product with w transposed: y[n, k] = sum over c of x[n, c] * w[k, c].
Kernel product(std::int64_t depth, std::int64_t columns, bool back) {
  KernelWriter writer("product");
  const auto x = writer.operand(DType::kF32, {kBatch, back ? columns : depth}), w = writer.operand(DType::kF32, {depth, columns}),
             y = writer.result(DType::kF32, {kBatch, back ? depth : columns});
  const Scalar row = writer.outer(kBatch), column = writer.outer(back ? depth : columns);
  writer.phase();
  const Scalar k = writer.inner(back ? columns : depth);
  const Scalar sum = writer.reduce(ReduceKind::kSum, writer.load(x, {row, k}) * writer.load(w, back ? std::vector{column, k} : std::vector{k, column}));
  writer.phase();
  writer.store(y, {row, column}, sum);
  return std::move(writer.kernel);
}

/// w -= x^T dy, in place: w as operand 2 and as result 3.
Kernel update(std::int64_t depth, std::int64_t columns) {
  KernelWriter writer("update");
  const auto x = writer.operand(DType::kF32, {kBatch, depth}), dy = writer.operand(DType::kF32, {kBatch, columns}), w = writer.operand(DType::kF32, {depth, columns}),
             made = writer.result(DType::kF32, {depth, columns});
  const Scalar row = writer.outer(depth), column = writer.outer(columns);
  writer.phase();
  const Scalar n = writer.inner(kBatch);
  const Scalar sum = writer.reduce(ReduceKind::kSum, writer.load(x, {n, row}) * writer.load(dy, {n, column}));
  writer.phase();
  writer.store(made, {row, column}, writer.load(w, {row, column}) - sum);
  return std::move(writer.kernel);
}

Kernel in_panels(const Kernel& kernel, const std::vector<std::uint32_t>& buffers, std::uint32_t axis) {
  auto made = over_panels(kernel, buffers, kernel.buffers[buffers[0]].shape, {axis, 32});
  EXPECT_TRUE(made.has_value());
  return made ? std::move(*made) : Kernel{};
}

Tensor numbers(const std::vector<std::int64_t>& shape, double seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < checked_element_count(shape); ++i) values.push_back(static_cast<float>(std::sin(seed + 0.7 * static_cast<double>(i))));
  return Tensor::of<float>(shape, values);
}

Tensor in_memory(const Tensor& tensor, const plan::Panels& panels) {
  return Tensor::make(tensor.dtype(), tensor.shape(), [&](std::span<std::byte> bytes) { plan::copy_to_panels(tensor, panels, bytes.data()); });
}

/// What the interpreter makes of the operands: the last buffer.
Tensor result_of(const Kernel& kernel, const std::vector<Tensor>& operands, const DimBindings& sizes) {
  return Tensor::make(DType::kF32, evaluate(kernel.buffers.back().shape, sizes), [&](std::span<std::byte> bytes) {
    std::vector<void*> buffers;
    for (const Tensor& operand : operands) buffers.push_back(const_cast<std::byte*>(operand.bytes().data()));  // operands are only read
    buffers.push_back(bytes.data());
    std::vector<std::int64_t> arguments;
    for (const Dim& size : size_arguments(kernel)) arguments.push_back(size.evaluate(sizes));
    interpret(kernel, buffers, arguments, 0, kernel.outer_size().evaluate(sizes));
  });
}

/// The axes of a product by a square matrix that is 0 above its diagonal.
TEST(Panels, ATriangleKeepsItsAxesUnlessOneIsCut) {
  Kernel kernel = matmul(64, 64, 96, {});
  kernel.triangle = Triangle{.low = 2, .high = 0};
  const Kernel of_columns = in_panels(kernel, {1}, 1);
  ASSERT_TRUE(of_columns.triangle.has_value());
  EXPECT_EQ(of_columns.axes[of_columns.triangle->low].extent, 64);
  EXPECT_GE(of_columns.triangle->low, of_columns.outer_count) << "the axis that is summed over";
  EXPECT_EQ(of_columns.axes[of_columns.triangle->high].name, kernel.axes[0].name);
  expect_agrees(of_columns, {.tolerance = 2e-4, .fill = [](std::uint32_t buffer, std::int64_t i) { return buffer == 0 and i % 64 > i / 64 ? 0 : 0.25 * static_cast<double>(i % 13 - 6); }});
  EXPECT_FALSE(in_panels(kernel, {0}, 1).triangle.has_value());
}

TEST(Panels, TensorsComeBackAsTheyWere) {
  for (const std::uint32_t axis : {0U, 1U, 2U}) {
    const Tensor rows = numbers({64, 96, 32}, axis);
    const Tensor lies = in_memory(rows, {axis, 32});
    EXPECT_EQ(lies.data<float>()[1], rows.data<float>()[axis == 0 ? 96 * 32 : axis == 1 ? 32 : 1]) << "neighbours along the axis lie side by side";
    const Tensor back = plan::from_panels(lies.bytes().data(), lies.dtype(), lies.shape(), {axis, 32});
    EXPECT_TRUE(std::ranges::equal(back.bytes(), rows.bytes()));
  }
}

TEST(Panels, KernelsComputeTheSame) {
  const struct {
    Kernel kernel;
    std::vector<std::uint32_t> buffers;
    std::uint32_t axis;
  } cases[] = {{product(70, 96, false), {1}, 1}, {product(70, 96, true), {1}, 1}, {product(64, 33, false), {1}, 0}, {product(64, 33, true), {1}, 0},
               {update(40, 64), {2, 3}, 1},      {update(64, 40), {2, 3}, 0}};
  for (const auto& one : cases) {
    const Kernel made = in_panels(one.kernel, one.buffers, one.axis);
    const DimBindings sizes = {{"N", 5}};
    std::vector<Tensor> rows, lie;
    for (std::uint32_t i = 0; i + 1 < one.kernel.buffers.size(); ++i) {
      rows.push_back(numbers(evaluate(one.kernel.buffers[i].shape, sizes), i));
      lie.push_back(std::ranges::count(one.buffers, i) > 0 ? in_memory(rows[i], {one.axis, 32}) : rows[i]);
    }
    const Tensor wanted = result_of(one.kernel, rows, sizes);
    Tensor found = result_of(made, lie, sizes).reshaped(wanted.shape());
    if (one.buffers.back() + 1 == one.kernel.buffers.size()) found = plan::from_panels(found.bytes().data(), found.dtype(), found.shape(), {one.axis, 32});
    ASSERT_EQ(found.shape(), wanted.shape());
    for (std::int64_t i = 0; i < wanted.element_count(); ++i) ASSERT_EQ(found.at(i), wanted.at(i)) << print(made);
  }
}

TEST(Panels, CompiledKernelsAgreeWithTheInterpreter) {
  std::vector<DimBindings> sizes;
  for (const std::int64_t n : kPanelSizes) sizes.push_back({{"N", n}});
  AgreeingKernels kernels;
  for (const std::int64_t depth : {7, 40})
    for (const std::int64_t columns : {64, 2112}) {  // the second is summed over in parts
      kernels.add(in_panels(product(depth, columns, false), {1}, 1), {.tolerance = 3e-4, .sizes = sizes});
      kernels.add(in_panels(product(depth, columns, true), {1}, 1), {.tolerance = 3e-4, .sizes = sizes});
      kernels.add(in_panels(product(columns, depth, false), {1}, 0), {.tolerance = 3e-4, .sizes = sizes});
      kernels.add(in_panels(update(depth, columns), {2, 3}, 1), {.tolerance = 3e-4, .sizes = sizes});
    }
  kernels.add(copy_into_panels({100, 64}, {1, 32}));
  kernels.expect();
}

TEST(Panels, ALineOfThemServesSeveralRows) {
  // All of a panel, four of AVX2's vectors, leaves registers for two rows only: then its lines come from the second level cache faster than that gives them.
  struct Case {
    const char* what;
    Kernel kernel;
    VectorUnit unit;
    std::int64_t rows, vectors;
  };
  const Kernel forward = in_panels(product(784, 256, false), {1}, 1), gradient = in_panels(update(784, 256), {2, 3}, 1);
  for (const Case& each : {Case{"product", forward, kAvx2, 6, 2}, Case{"product", forward, kAvx512, 13, 2}, Case{"gradient", gradient, kAvx2, 6, 2}, Case{"gradient", gradient, kAvx512, 13, 2}}) {
    SCOPED_TRACE(each.what + std::string(", vectors of ") + std::to_string(each.unit.lanes));
    const std::optional<Blocking> tiles = choose_blocking(each.kernel, make_nest(each.kernel), each.unit);
    ASSERT_TRUE(tiles.has_value());
    EXPECT_EQ(tiles->row_count, each.rows);
    EXPECT_EQ(tiles->column_count, each.vectors);
  }
}

TEST(Panels, WhatCannotBeCutIsLeft) {
  KernelWriter writer("shifted");
  const auto x = writer.operand(DType::kF32, {64}), y = writer.result(DType::kF32, {64});
  const Scalar i = writer.outer(64);
  writer.phase();
  writer.store(y, {i}, writer.load(x, {writer.number(63) - i}));
  EXPECT_FALSE(over_panels(writer.kernel, {0}, {64}, {0, 32}).has_value()) << "the index is worked out";
  EXPECT_TRUE(over_panels(writer.kernel, {1}, {64}, {0, 32}).has_value());
}

// ---- whole plans

constexpr std::int64_t kInputs = 160, kHidden = 128, kOutputs = 64;

Compiled compiled(const std::string& optimizer, const PassChoice& passes = {}) {
  const test::TempFolder folder;
  nn::Model model("net");
  const nn::Value x = model.input("x", {kInputs});
  const nn::Value hidden = nn::relu(nn::matmul(x, model.weight("a", {kInputs, kHidden}, nn::Initializer::zeros())));
  model.output("y", nn::matmul(hidden, model.weight("b", {kHidden, kOutputs}, nn::Initializer::zeros())));
  save_model(model, folder / "net.onnx");
  const onnx::Imported imported = onnx::import_model(folder / "net.onnx");
  const Recipe recipe = read_recipe_text("[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"" + optimizer + "\"\nlearning_rate = 0.01\n");
  return compile({imported.graph, imported.model, "net"}, recipe, {.levels = {.cpu = {test::host_level()}}, .passes = passes, .explain = true});
}

/// Weights and states after five steps from weights that are written, as anybody would.
std::map<std::string, Tensor> trained(const plan::Plan& plan) {
  Session session(plan, {.device = "cpu", .threads = 2});
  session.write("a", numbers({kInputs, kHidden}, 1));
  session.write("b", numbers({kHidden, kOutputs}, 2));
  EXPECT_TRUE(std::ranges::equal(session.read("a").bytes(), numbers({kInputs, kHidden}, 1).bytes())) << "what is read is what was written";
  for (int step = 0; step < 5; ++step) {
    const Tensor rows = numbers({9, kInputs}, step), target = numbers({9, kOutputs}, 3 * step), rate = Tensor::scalar(0.01);
    const std::pair<std::string, TensorView> feeds[] = {{"x", rows}, {"target", target}, {"learning_rate", rate}};
    session.run(plan::kTrainStep, feeds);
  }
  std::map<std::string, Tensor> values;
  for (const plan::Persistent& persistent : plan.programs[0].persistents)
    if (persistent.role != plan::Persistent::Role::kConstant) values[persistent.name] = session.read(persistent.name);
  return values;
}

int panels_in(const plan::Plan& plan) {
  return static_cast<int>(std::ranges::count_if(plan.programs[0].persistents, [](const plan::Persistent& persistent) { return persistent.panels.has_value(); }));
}

TEST(Panels, WeightsAndMomentsLieSoAndTrainAsRows) {
  for (const std::string optimizer : {"sgd", "adam"}) {
    const Compiled in_rows = compiled(optimizer, PassChoice("fold,simplify,cse,dce,loops,layout,library,split,fuse")), in_panels = compiled(optimizer);
    EXPECT_EQ(panels_in(in_rows.plan), 0);
    EXPECT_EQ(panels_in(in_panels.plan), optimizer == "sgd" ? 2 : 6) << in_panels.why;
    EXPECT_THAT(in_panels.why, HasSubstr("  a: in panels of 32 along axis 1, and " + std::string(optimizer == "sgd" ? "0" : "2") + " states with it\n"));
    const test::TempFolder folder;
    plan::save(in_panels.plan, folder / "net.hone");
    const auto wanted = trained(in_rows.plan), found = trained(plan::load(folder / "net.hone"));
    for (const auto& [name, value] : wanted)
      for (std::int64_t i = 0; i < value.element_count(); ++i) ASSERT_NEAR(found.at(name).at(i), value.at(i), 2e-5 * (1 + std::fabs(value.at(i)))) << name << " " << i;
  }
}

TEST(Panels, DamagedOnesAreRefused) {
  const plan::Plan good = compiled("sgd").plan;
  for (const plan::Panels wrong : {plan::Panels{2, 32}, plan::Panels{1, 0}, plan::Panels{1, -32}, plan::Panels{1, 48}, plan::Panels{0, 32}}) {
    plan::Plan plan = good;
    for (plan::Persistent& persistent : plan.programs[0].persistents)
      if (persistent.panels) persistent.panels = wrong;
    EXPECT_THROW(plan::check(plan), Error) << wrong.axis << " " << wrong.width;
  }
}

}  // namespace
}  // namespace hone
