// Every library row against loops that a person can read, over random shapes and attributes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "base/check.h"
#include "runtime/device/host_memory.h"
#include "runtime/device/team.h"
#include "runtime/library/rows.h"
#include "tests/support/host_level.h"

namespace hone {
namespace {

using Shape64 = std::vector<std::int64_t>;
using Values = std::vector<float>;

std::int64_t count_of(const Shape64& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) { return std::uniform_int_distribution(low, high)(engine_); }
  bool flip() { return between(0, 1) == 1; }
  Values numbers(const Shape64& shape) {
    Values numbers(static_cast<std::size_t>(count_of(shape)));
    for (float& number : numbers) number = std::uniform_real_distribution<float>(-1, 1)(engine_);
    return numbers;
  }

 private:
  std::mt19937 engine_;
};

TensorType f32(Shape64 shape) { return {DType::kF32, std::move(shape)}; }

/// Runs a row with f32 operands; the bytes of each result. Runs it twice, the second time at other addresses, and expects the same.
std::vector<std::vector<std::byte>> run_row(std::string_view name, const LibrarySpec& spec, const std::vector<const void*>& operands) {
  const LibraryRow* row = find_library_row(name);
  HONE_CHECK(row != nullptr, "no such row");
  static int calls = 0;
  const Team team(calls++ % 4 == 0 ? 2 : 1);
  const Team::InUse in_use(team);
  const std::unique_ptr<LibraryCall> call = row->make(spec);
  const LibraryDescription& description = call->description();
  std::vector<std::vector<std::byte>> first;
  for (int round = 0; round < 2; ++round) {
    const HostMemory scratch(description.scratch_bytes, "scratch");
    std::fill_n(scratch.data(), scratch.size(), std::byte{0xff});
    std::vector<std::vector<std::byte>> results;
    std::vector<void*> pointers;
    for (const std::size_t bytes : description.result_bytes) results.emplace_back(bytes, std::byte{0xff});
    for (auto& result : results) pointers.push_back(result.data());
    call->execute(operands, pointers, scratch.data());
    if (round == 0) {
      first = results;
    } else {
      EXPECT_EQ(results, first);
    }
  }
  return first;
}

Values floats_of(const std::vector<std::byte>& bytes) {
  const auto* begin = reinterpret_cast<const float*>(bytes.data());
  return {begin, begin + bytes.size() / sizeof(float)};
}

Values run_f32(std::string_view name, const LibrarySpec& spec, const std::vector<const Values*>& operands) {
  std::vector<const void*> pointers;
  for (const Values* operand : operands) pointers.push_back(operand == nullptr ? nullptr : operand->data());
  return floats_of(run_row(name, spec, pointers)[0]);
}

void expect_near(const Values& found, const Values& expected, float tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << what << " element " << i;
}

std::string text(const LibrarySpec& spec) {
  std::string text;
  for (const auto& operand : spec.operands)
    if (operand) text += testing::PrintToString(operand->shape);
  text += " -> " + testing::PrintToString(spec.results[0].shape) + " " + testing::PrintToString(spec.attributes);
  return text;
}

// matmul

/// Element of a tensor of `shape`, broadcast to the batch index of a result of `y_shape`, at row and column.
float element(const Values& numbers, const Shape64& shape, std::int64_t batch, const Shape64& y_shape, std::int64_t row, std::int64_t column) {
  std::int64_t at = 0, stride = 1;
  const std::size_t rank = shape.size();
  if (rank >= 1) at += shape[rank - 1] == 1 ? 0 : column, stride *= shape[rank - 1];
  if (rank >= 2) at += (shape[rank - 2] == 1 ? 0 : row) * stride, stride *= shape[rank - 2];
  for (std::size_t i = 3; i <= y_shape.size(); ++i) {
    const std::int64_t extent = y_shape[y_shape.size() - i], index = batch % extent;
    batch /= extent;
    if (i > rank) continue;
    at += (shape[rank - i] == 1 ? 0 : index) * stride;
    stride *= shape[rank - i];
  }
  return numbers[static_cast<std::size_t>(at)];
}

Values plain_matmul(const LibrarySpec& spec, const Values& a, const Values& b) {
  const Shape64 &a_shape = spec.operands[0]->shape, &b_shape = spec.operands[1]->shape, &y_shape = spec.results[0].shape;
  const bool ta = spec.attributes.at("ta")[0] != 0, tb = spec.attributes.at("tb")[0] != 0;
  const std::int64_t m = y_shape[y_shape.size() - 2], n = y_shape.back(), k = ta ? a_shape[a_shape.size() - 2] : a_shape.back();
  Values y;
  for (std::int64_t batch = 0; batch < (m * n == 0 ? 0 : count_of(y_shape) / (m * n)); ++batch)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += static_cast<double>(ta ? element(a, a_shape, batch, y_shape, l, i) : element(a, a_shape, batch, y_shape, i, l)) *
                 (tb ? element(b, b_shape, batch, y_shape, j, l) : element(b, b_shape, batch, y_shape, l, j));
        y.push_back(static_cast<float>(sum));
      }
  return y;
}

/// `batch` as an operand may have it: whole, with some extents 1, or with axes missing in front.
Shape64 narrowed(Random& random, Shape64 batch) {
  if (random.flip()) return batch;
  for (std::int64_t& extent : batch)
    if (random.flip()) extent = 1;
  if (random.flip()) batch.erase(batch.begin(), batch.begin() + random.between(0, static_cast<std::int64_t>(batch.size())));
  return batch;
}

/// Of two batches of which each extent is the same, or 1 in one of them, or missing in front.
Shape64 broadcast(Shape64 a, Shape64 b) {
  if (a.size() < b.size()) std::swap(a, b);
  for (std::size_t i = 1; i <= b.size(); ++i) a[a.size() - i] = std::max(a[a.size() - i], b[b.size() - i]);
  return a;
}

Shape64 with_matrix(Shape64 batch, std::int64_t rows, std::int64_t columns, bool transposed) {
  batch.push_back(transposed ? columns : rows);
  batch.push_back(transposed ? rows : columns);
  return batch;
}

TEST(LibraryMatmul, AgreesWithLoops) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    Shape64 batch;
    for (std::int64_t i = random.between(0, 3); i > 0; --i) batch.push_back(random.between(1, 3));
    const std::int64_t m = random.between(1, 20), k = random.between(round % 20 == 0 ? 0 : 1, 20), n = random.between(1, 20);
    const bool ta = random.flip(), tb = random.flip();
    const Shape64 a_batch = narrowed(random, batch), b_batch = narrowed(random, batch);
    batch = broadcast(a_batch, b_batch);
    LibrarySpec spec;
    spec.attributes = {{"ta", {ta}}, {"tb", {tb}}};
    spec.operands = {f32(with_matrix(a_batch, m, k, ta)), f32(with_matrix(b_batch, k, n, tb))};
    spec.results = {f32(with_matrix(batch, m, n, false))};
    const Values a = random.numbers(spec.operands[0]->shape), b = random.numbers(spec.operands[1]->shape);
    expect_near(run_f32("onednn.matmul", spec, {&a, &b}), plain_matmul(spec, a, b), 1e-5F, text(spec));
  }
}

TEST(LibraryMatmul, AgreesWithLoopsWhereItRepacks) {
  Random random(6);
  LibrarySpec spec;
  spec.attributes = {{"ta", {0}}, {"tb", {0}}};
  spec.operands = {f32({40, 70}), f32({70, 1536})};
  spec.results = {f32({40, 1536})};
  const Values a = random.numbers({40, 70}), b = random.numbers({70, 1536});
  if (test::has_avx512()) EXPECT_GE(find_library_row("onednn.matmul")->describe(spec).scratch_bytes, 70 * 1536 * sizeof(float));  // elsewhere oneDNN likes it as it is
  expect_near(run_f32("onednn.matmul", spec, {&a, &b}), plain_matmul(spec, a, b), 1e-5F, text(spec));
}

TEST(LibraryMatmul, EmptyBatchWritesNothing) {
  LibrarySpec spec;
  spec.operands = {f32({0, 5}), f32({5, 7})};
  spec.results = {f32({0, 7})};
  EXPECT_TRUE(run_f32("onednn.matmul", spec, {nullptr, nullptr}).empty());
}

TEST(LibraryMatmul, SumOverEmptyBatchIsZero) {
  LibrarySpec spec;
  spec.attributes = {{"ta", {1}}, {"tb", {0}}};
  spec.operands = {f32({0, 2}), f32({0, 3})};
  spec.results = {f32({2, 3})};
  EXPECT_THAT(run_f32("onednn.matmul", spec, {nullptr, nullptr}), testing::ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(LibraryMatmul, TakesBfloat16) {
  const std::vector<std::uint16_t> a(6, float_to_bfloat16(0.5F)), b(6, float_to_bfloat16(3));
  LibrarySpec spec;
  spec.operands = {TensorType{DType::kBF16, {2, 3}}, TensorType{DType::kBF16, {3, 2}}};
  spec.results = {f32({2, 2})};
  EXPECT_THAT(floats_of(run_row("onednn.matmul", spec, {a.data(), b.data()})[0]), testing::Each(4.5F));
}

/// Values as bf16 holds them.
Values rounded(Values numbers) {
  for (float& number : numbers) number = bfloat16_to_float(float_to_bfloat16(number));
  return numbers;
}

/// The row over the same operands in bf16, which they must fit; its result in `to`.
Values run_bf16(std::string_view name, LibrarySpec spec, const std::vector<const Values*>& operands, DType to) {
  std::vector<std::vector<std::uint16_t>> stored;
  std::vector<const void*> pointers;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    spec.operands[i]->dtype = DType::kBF16;
    std::ranges::transform(*operands[i], std::back_inserter(stored.emplace_back()), float_to_bfloat16);
  }
  for (const auto& each : stored) pointers.push_back(each.data());
  spec.results[0].dtype = to;
  const std::vector<std::byte> bytes = run_row(name, spec, pointers)[0];
  if (to == DType::kF32) return floats_of(bytes);
  const auto* begin = reinterpret_cast<const std::uint16_t*>(bytes.data());
  Values numbers;
  std::transform(begin, begin + bytes.size() / sizeof(std::uint16_t), std::back_inserter(numbers), bfloat16_to_float);
  return numbers;
}

/// How far rounding may move a result: an f32 sum's error, or half a last place of bf16 on top.
float tolerance_of(DType to) { return to == DType::kF32 ? 1e-4F : 1e-4F + 0x1p-8F; }

TEST(LibraryMatmul, OfBfloat16AgreesWithLoops) {
  Random random(7);
  for (int round = 0; round < 60; ++round) {
    const std::int64_t m = random.between(1, 70), k = random.between(1, 70), n = random.between(1, 70);
    const bool ta = random.flip(), tb = random.flip();
    const Shape64 batch = random.flip() ? Shape64{random.between(1, 4)} : Shape64{};
    LibrarySpec spec;
    spec.attributes = {{"ta", {ta}}, {"tb", {tb}}};
    spec.operands = {f32(with_matrix(batch, m, k, ta)), f32(with_matrix(batch, k, n, tb))};
    spec.results = {f32(with_matrix(batch, m, n, false))};
    const Values a = rounded(random.numbers(spec.operands[0]->shape)), b = rounded(random.numbers(spec.operands[1]->shape));
    for (const DType to : {DType::kF32, DType::kBF16})
      expect_near(run_bf16("onednn.matmul", spec, {&a, &b}, to), plain_matmul(spec, a, b), tolerance_of(to), text(spec));
  }
}

// Windows: convolution and pooling, brought to three spatial axes

struct Geometry {
  std::int64_t batch = 1, channels = 1, outputs = 1, groups = 1;
  std::array<std::int64_t, 3> input = {1, 1, 1}, kernel = {1, 1, 1}, output = {1, 1, 1}, stride = {1, 1, 1}, dilation = {1, 1, 1}, begin = {}, end = {};
  std::size_t space = 3;
  bool channels_last = false;

  Shape64 spatial(const std::array<std::int64_t, 3>& extents) const { return {extents.end() - static_cast<std::ptrdiff_t>(space), extents.end()}; }
  Shape64 shape(std::int64_t first, std::int64_t second, const std::array<std::int64_t, 3>& extents) const {
    Shape64 shape = spatial(extents);
    shape.insert(shape.begin(), {first, second});
    return shape;
  }
  Shape64 activation(std::int64_t channels_of, const std::array<std::int64_t, 3>& extents) const {
    Shape64 axes = shape(batch, channels_of, extents);
    if (channels_last) std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end());
    return axes;
  }
  Shape64 x() const { return activation(channels, input); }
  Shape64 y() const { return activation(outputs, output); }
  /// What the loops computed channels first, as the activation lies.
  Values stored(const Values& plain, std::int64_t channels_of) const {
    if (not channels_last) return plain;
    Values moved(plain.size());
    const std::size_t count = static_cast<std::size_t>(channels_of), positions = plain.size() / count / static_cast<std::size_t>(batch);
    for (std::size_t i = 0; i < plain.size(); ++i) moved[(i / positions / count * positions + i % positions) * count + i / positions % count] = plain[i];
    return moved;
  }
  Shape64 w() const { return shape(outputs, channels / groups, kernel); }

  LibrarySpec spec(bool convolution) const {
    LibrarySpec spec;
    spec.attributes = {{"strides", spatial(stride)}, {"dilations", spatial(dilation)}, {"pads_begin", spatial(begin)}, {"pads_end", spatial(end)}};
    if (channels_last) spec.attributes["channels_last"] = {1};
    if (convolution) spec.attributes["groups"] = {groups};
    if (not convolution) spec.attributes["kernel"] = spatial(kernel);
    return spec;
  }
};

/// Calls visit(output position, input position, kernel position), flattened, for every pair that a window brings together inside of the input.
template <typename Visit>
void for_windows(const Geometry& g, Visit visit) {
  std::array<std::int64_t, 3> o{}, k{}, i{};
  for (o[0] = 0; o[0] < g.output[0]; ++o[0])
    for (o[1] = 0; o[1] < g.output[1]; ++o[1])
      for (o[2] = 0; o[2] < g.output[2]; ++o[2])
        for (k[0] = 0; k[0] < g.kernel[0]; ++k[0])
          for (k[1] = 0; k[1] < g.kernel[1]; ++k[1])
            for (k[2] = 0; k[2] < g.kernel[2]; ++k[2]) {
              bool inside = true;
              for (std::size_t a = 0; a < 3; ++a) {
                i[a] = o[a] * g.stride[a] + k[a] * g.dilation[a] - g.begin[a];
                inside = inside and i[a] >= 0 and i[a] < g.input[a];
              }
              const auto flat = [](const auto& index, const auto& extent) { return (index[0] * extent[1] + index[1]) * extent[2] + index[2]; };
              if (inside) visit(flat(o, g.output), flat(i, g.input), flat(k, g.kernel));
            }
}

std::int64_t volume(const std::array<std::int64_t, 3>& extents) { return extents[0] * extents[1] * extents[2]; }

/// Calls visit(y, x, w): the elements that one multiplication of the convolution touches.
template <typename Visit>
void for_products(const Geometry& g, Visit visit) {
  const std::int64_t group_channels = g.channels / g.groups, group_outputs = g.outputs / g.groups;
  for (std::int64_t n = 0; n < g.batch; ++n)
    for (std::int64_t o = 0; o < g.outputs; ++o)
      for (std::int64_t c = 0; c < group_channels; ++c)
        for_windows(g, [&](std::int64_t at_y, std::int64_t at_x, std::int64_t at_w) {
          const std::int64_t channel = o / group_outputs * group_channels + c;
          visit(static_cast<std::size_t>((n * g.outputs + o) * volume(g.output) + at_y),
                static_cast<std::size_t>((n * g.channels + channel) * volume(g.input) + at_x),
                static_cast<std::size_t>((o * group_channels + c) * volume(g.kernel) + at_w));
        });
}

Geometry random_geometry(Random& random, bool convolution) {
  Geometry g;
  g.space = static_cast<std::size_t>(random.between(1, 3));
  g.channels_last = random.flip();
  g.batch = random.between(1, 4);
  g.groups = convolution and random.flip() ? random.between(1, 3) : 1;
  const bool depthwise = g.groups > 1 and random.flip();
  g.channels = g.groups * (depthwise ? 1 : random.between(1, random.flip() ? 4 : 20));
  g.outputs = convolution ? g.groups * (depthwise ? 1 : random.between(1, 20)) : g.channels;
  for (std::size_t a = 3 - g.space; a < 3; ++a) {
    g.kernel[a] = random.between(1, 4);
    g.stride[a] = random.between(1, 3);
    g.dilation[a] = random.between(1, 2);
    const std::int64_t reach = (g.kernel[a] - 1) * g.dilation[a] + 1;
    g.begin[a] = random.between(0, reach - 1);
    g.end[a] = random.between(0, reach - 1);
    g.input[a] = random.between(std::max<std::int64_t>(g.dilation[a], reach - g.begin[a] - g.end[a]), 12);
    const std::int64_t room = g.input[a] + g.begin[a] + g.end[a] - reach;
    g.output[a] = room / g.stride[a] + 1;
    // A last window that reaches beyond the pads, as ceil_mode has it.
    const bool more = not convolution and room % g.stride[a] != 0 and g.output[a] * g.stride[a] < g.input[a] + g.begin[a];
    if (more and random.flip()) ++g.output[a];
  }
  return g;
}

TEST(LibraryConv, AgreesWithLoops) {
  Random random(2);
  for (int round = 0; round < 80; ++round) {
    const Geometry g = random_geometry(random, true);
    LibrarySpec spec = g.spec(true);
    spec.operands = {f32(g.x()), f32(g.w())};
    spec.results = {f32(g.y())};
    const Values x = random.numbers(g.x()), w = random.numbers(g.w());
    Values y(static_cast<std::size_t>(count_of(g.y())));
    for_products(g, [&](std::size_t at_y, std::size_t at_x, std::size_t at_w) { y[at_y] += x[at_x] * w[at_w]; });
    const Values stored = g.stored(x, g.channels);
    expect_near(run_f32("onednn.conv", spec, {&stored, &w}), g.stored(y, g.outputs), 1e-4F, text(spec));
  }
}

TEST(LibraryConv, GradientsAgreeWithLoops) {
  Random random(3);
  for (int round = 0; round < 80; ++round) {
    const Geometry g = random_geometry(random, true);
    const Values x = random.numbers(g.x()), w = random.numbers(g.w()), dy = random.numbers(g.y());
    Values dx(x.size()), dw(w.size());
    for_products(g, [&](std::size_t at_y, std::size_t at_x, std::size_t at_w) {
      dx[at_x] += dy[at_y] * w[at_w];
      dw[at_w] += dy[at_y] * x[at_x];
    });
    LibrarySpec input = g.spec(true), weight = g.spec(true);
    input.operands = {f32(g.y()), f32(g.w())};
    input.results = {f32(g.x())};
    const Values stored_x = g.stored(x, g.channels), stored_dy = g.stored(dy, g.outputs);
    expect_near(run_f32("onednn.conv_input_grad", input, {&stored_dy, &w}), g.stored(dx, g.channels), 1e-4F, text(input));
    weight.operands = {f32(g.x()), f32(g.y())};
    weight.results = {f32(g.w())};
    expect_near(run_f32("onednn.conv_weight_grad", weight, {&stored_x, &stored_dy}), dw, 1e-4F, text(weight));
  }
}

TEST(LibraryConv, OfBfloat16AgreesWithLoops) {
  Random random(8);
  for (int round = 0; round < 40; ++round) {
    const Geometry g = random_geometry(random, true);
    const Values x = rounded(random.numbers(g.x())), w = rounded(random.numbers(g.w())), dy = rounded(random.numbers(g.y()));
    Values y(dy.size()), dx(x.size()), dw(w.size());
    for_products(g, [&](std::size_t at_y, std::size_t at_x, std::size_t at_w) {
      y[at_y] += x[at_x] * w[at_w];
      dx[at_x] += dy[at_y] * w[at_w];
      dw[at_w] += dy[at_y] * x[at_x];
    });
    const Values stored_x = g.stored(x, g.channels), stored_dy = g.stored(dy, g.outputs);
    LibrarySpec spec = g.spec(true);
    for (const DType to : {DType::kF32, DType::kBF16}) {
      spec.operands = {f32(g.x()), f32(g.w())}, spec.results = {f32(g.y())};
      expect_near(run_bf16("onednn.conv", spec, {&stored_x, &w}, to), g.stored(y, g.outputs), tolerance_of(to), text(spec));
      spec.operands = {f32(g.y()), f32(g.w())}, spec.results = {f32(g.x())};
      expect_near(run_bf16("onednn.conv_input_grad", spec, {&stored_dy, &w}, to), g.stored(dx, g.channels), tolerance_of(to), text(spec));
      spec.operands = {f32(g.x()), f32(g.y())}, spec.results = {f32(g.w())};
      expect_near(run_bf16("onednn.conv_weight_grad", spec, {&stored_x, &stored_dy}, to), dw, tolerance_of(to), text(spec));
    }
  }
}

TEST(LibraryConv, EmptyBatchHasZeroWeightGradient) {
  LibrarySpec spec;
  spec.operands = {f32({0, 2, 5, 5}), f32({0, 3, 3, 3})};
  spec.results = {f32({3, 2, 3, 3})};
  EXPECT_THAT(run_f32("onednn.conv_weight_grad", spec, {nullptr, nullptr}), testing::Each(0));
}

TEST(LibraryPool, MaximumAgreesWithLoops) {
  Random random(4);
  for (int round = 0; round < 80; ++round) {
    const Geometry g = random_geometry(random, false);
    Values x = random.numbers(g.x());
    for (float& number : x) number = std::round(number * 4);  // ties: the first wins
    const Values dy = random.numbers(g.y());
    Values y(dy.size(), -INFINITY), dx(x.size());
    std::vector<std::size_t> best(dy.size());
    for (std::int64_t plane = 0; plane < g.batch * g.channels; ++plane)
      for_windows(g, [&](std::int64_t at_y, std::int64_t at_x, std::int64_t) {
        const auto to = static_cast<std::size_t>(plane * volume(g.output) + at_y), from = static_cast<std::size_t>(plane * volume(g.input) + at_x);
        if (x[from] > y[to]) y[to] = x[from], best[to] = from;
      });
    if (testing::Value(y, testing::Contains(-INFINITY))) continue;  // a window of pads only: oneDNN's answer differs, and the compiler does not ask
    for (std::size_t i = 0; i < dy.size(); ++i) dx[best[i]] += dy[i];
    LibrarySpec forward = g.spec(false), backward = g.spec(false);
    forward.operands = {f32(g.x())};
    forward.results = {f32(g.y())};
    const Values stored_x = g.stored(x, g.channels), stored_y = g.stored(y, g.channels), stored_dy = g.stored(dy, g.channels);
    expect_near(run_f32("onednn.max_pool", forward, {&stored_x}), stored_y, 0, text(forward));
    forward.results.push_back({DType::kU8, {0}});
    const auto results = run_row("onednn.max_pool", forward, {stored_x.data()});
    expect_near(floats_of(results[0]), stored_y, 0, text(forward));
    EXPECT_EQ(find_library_row("onednn.max_pool")->describe(forward).result_bytes[1], results[1].size());
    backward.operands = {f32(g.y()), TensorType{DType::kU8, {0}}};
    backward.results = {f32(g.x())};
    expect_near(floats_of(run_row("onednn.max_pool_grad", backward, {stored_dy.data(), results[1].data()})[0]), g.stored(dx, g.channels), 1e-5F,
                text(backward));
  }
}

/// As the op means it: a NaN is the largest, and a window of nothing but -inf has no number above it.
TEST(LibraryPool, MaximumOfNaNAndOfInfinities) {
  Random random(6);
  for (int round = 0; round < 60; ++round) {
    const Geometry g = random_geometry(random, false);
    Values x = random.numbers(g.x());
    for (float& number : x)
      if (random.flip()) number = random.flip() ? -INFINITY : random.flip() ? std::nanf("") : INFINITY;
    std::vector<std::int64_t> inside(static_cast<std::size_t>(volume(g.output)));
    for_windows(g, [&](std::int64_t at_y, std::int64_t, std::int64_t) { ++inside[static_cast<std::size_t>(at_y)]; });
    if (testing::Value(inside, testing::Contains(0))) continue;
    Values y(static_cast<std::size_t>(g.batch * g.channels * volume(g.output)), -INFINITY);
    for (std::int64_t plane = 0; plane < g.batch * g.channels; ++plane)
      for_windows(g, [&](std::int64_t at_y, std::int64_t at_x, std::int64_t) {
        float& to = y[static_cast<std::size_t>(plane * volume(g.output) + at_y)];
        const float from = x[static_cast<std::size_t>(plane * volume(g.input) + at_x)];
        if (std::isnan(from) or from > to) to = from;
      });
    LibrarySpec spec = g.spec(false);
    spec.operands = {f32(g.x())};
    spec.results = {f32(g.y()), {DType::kU8, {0}}};
    const Values stored_x = g.stored(x, g.channels), stored_y = g.stored(y, g.channels), given = floats_of(run_row("onednn.max_pool", spec, {stored_x.data()})[0]);
    ASSERT_EQ(given.size(), stored_y.size());
    for (std::size_t i = 0; i < given.size(); ++i) EXPECT_TRUE(given[i] == stored_y[i] or (std::isnan(given[i]) and std::isnan(stored_y[i]))) << given[i] << " for " << stored_y[i] << ", " << text(spec);
  }
}

TEST(LibraryPool, MeanAgreesWithLoops) {
  Random random(5);
  for (int round = 0; round < 80; ++round) {
    const Geometry g = random_geometry(random, false);
    const bool count_pads = random.flip();
    const Values x = random.numbers(g.x()), dy = random.numbers(g.y());
    std::vector<std::int64_t> inside(static_cast<std::size_t>(volume(g.output)));
    for_windows(g, [&](std::int64_t at_y, std::int64_t, std::int64_t) { ++inside[static_cast<std::size_t>(at_y)]; });
    if (testing::Value(inside, testing::Contains(0))) continue;
    Values y(dy.size()), dx(x.size());
    for (std::int64_t plane = 0; plane < g.batch * g.channels; ++plane)
      for_windows(g, [&](std::int64_t at_y, std::int64_t at_x, std::int64_t) {
        const auto to = static_cast<std::size_t>(plane * volume(g.output) + at_y), from = static_cast<std::size_t>(plane * volume(g.input) + at_x);
        const auto divisor = static_cast<float>(count_pads ? volume(g.kernel) : inside[static_cast<std::size_t>(at_y)]);
        y[to] += x[from] / divisor;
        dx[from] += dy[to] / divisor;
      });
    LibrarySpec forward = g.spec(false), backward = g.spec(false);
    forward.attributes["count_pads"] = backward.attributes["count_pads"] = {count_pads};
    forward.operands = {f32(g.x())};
    forward.results = {f32(g.y())};
    const Values stored_x = g.stored(x, g.channels), stored_dy = g.stored(dy, g.channels);
    expect_near(run_f32("onednn.avg_pool", forward, {&stored_x}), g.stored(y, g.channels), 1e-5F, text(forward));
    backward.operands = {f32(g.y())};
    backward.results = {f32(g.x())};
    expect_near(run_f32("onednn.avg_pool_grad", backward, {&stored_dy}), g.stored(dx, g.channels), 1e-5F, text(backward));
  }
}

TEST(LibraryPool, EmptyBatchWritesNothing) {
  LibrarySpec spec;
  spec.attributes = {{"kernel", {2}}};
  spec.operands = {f32({0, 2, 5})};
  spec.results = {f32({0, 2, 4}), {DType::kU8, {7}}};
  const LibraryDescription description = find_library_row("onednn.max_pool")->describe(spec);
  EXPECT_THAT(description.result_bytes, testing::ElementsAre(0, 0));
}

// Rows

TEST(LibraryRows, AreFoundByTheirDistinctNames) {
  for (const LibraryRow& row : library_rows()) {
    EXPECT_EQ(find_library_row(row.name), &row);
    EXPECT_FALSE(row.doc.empty());
  }
  EXPECT_EQ(find_library_row("onednn.nothing"), nullptr);
}

TEST(LibraryRows, SayWhichCallIsWrong) {
  LibrarySpec spec;
  spec.operands = {f32({2, 3}), f32({4, 5})};
  spec.results = {f32({2, 5})};
  try {
    find_library_row("onednn.matmul")->make(spec);
    FAIL();
  } catch (const InternalError& error) { EXPECT_THAT(error.what(), testing::HasSubstr("onednn.matmul(f32[2,3], f32[4,5]) -> f32[2,5]")); }
  spec.operands.pop_back();
  EXPECT_THROW(find_library_row("onednn.matmul")->make(spec), InternalError);
  spec.operands = {TensorType{DType::kI64, {2, 3}}, f32({3, 5})};
  EXPECT_THROW(find_library_row("onednn.matmul")->make(spec), InternalError);
}

// Values of threads

/// The first result, with random operands.
std::vector<std::byte> result_on(int threads, std::string_view row, const LibrarySpec& spec) {
  Random random(5);
  std::vector<Values> operands;
  std::vector<const void*> pointers;
  for (const auto& operand : spec.operands) operands.push_back(random.numbers(operand->shape));
  for (const Values& operand : operands) pointers.push_back(operand.data());
  const Team team(threads);
  const Team::InUse in_use(team);
  const std::unique_ptr<LibraryCall> call = find_library_row(row)->make(spec);
  const HostMemory scratch(call->description().scratch_bytes, "scratch");
  std::vector<std::byte> result(call->description().result_bytes[0]);
  void* results[] = {result.data()};
  call->execute(pointers, results, scratch.data());
  return result;
}

/// Large enough for several threads.
TEST(LibraryThreads, GiveTheSameBitsUnlessTheRowSaysOtherwise) {
  Random random(11);
  for (int i = 0; i < 6; ++i) {
    const std::int64_t m = random.between(1, 300), n = random.between(1, 100), k = random.between(1500, 3000), batch = random.between(2, 9);
    const std::int64_t samples = random.between(2, 9), channels = random.between(8, 40), y_channels = random.between(8, 40), extent = 2 * random.between(4, 12);
    const TensorType x = f32({samples, channels, extent, extent}), w = f32({y_channels, channels, 3, 3}), y = f32({samples, y_channels, extent - 2, extent - 2});
    const TensorType half = f32({samples, channels, extent / 2, extent / 2});
    const std::map<std::string, Shape64, std::less<>> pool = {{"kernel", {2, 2}}, {"strides", {2, 2}}};
    const std::pair<const char*, LibrarySpec> cases[] = {
        {"onednn.matmul", {.attributes = {}, .operands = {f32({m, k}), f32({k, n})}, .results = {f32({m, n})}}},
        {"onednn.matmul", {.attributes = {{"tb", {1}}}, .operands = {f32({m, k}), f32({n, k})}, .results = {f32({m, n})}}},
        {"onednn.matmul", {.attributes = {}, .operands = {f32({batch, m, n}), f32({batch, n, m})}, .results = {f32({batch, m, m})}}},
        {"onednn.conv", {.attributes = {}, .operands = {x, w}, .results = {y}}},
        {"onednn.conv_input_grad", {.attributes = {}, .operands = {y, w}, .results = {x}}},
        {"onednn.max_pool", {.attributes = pool, .operands = {x}, .results = {half}}},
        {"onednn.avg_pool", {.attributes = pool, .operands = {x}, .results = {half}}},
        {"onednn.avg_pool_grad", {.attributes = pool, .operands = {half}, .results = {x}}},
    };
    for (const auto& [row, spec] : cases) {
      if (row == std::string_view("onednn.matmul") and not test::has_avx512()) continue;  // LibraryRow::thread_sums
      const std::vector<std::byte> alone = result_on(1, row, spec);
      for (const int threads : {2, 3}) ASSERT_TRUE(result_on(threads, row, spec) == alone) << row << " " << text(spec) << " on " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace hone
