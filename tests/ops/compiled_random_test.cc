// Training steps that draw random numbers: what is compiled draws, bit for bit, what the interpreter draws. All other arithmetic here is exact.
#include <gtest/gtest.h>

#include "backends/compile.h"
#include "ir/kernel/interpret.h"
#include "ir/parse.h"
#include "runtime/session.h"

namespace hone::test {
namespace {

/// Dropout beside a loop, and one in it; in both directions of the loop through the gradient.
constexpr std::string_view kModel = R"(graph g(input %x: f32[N,3,4], weight %w: f32[4] = [1, 2, 3, -2], constant %rate: f32[] = 0.5, constant %start: f32[4] = [0, 0, 0, 0]) {
  %a = mul(%x, %w)
  %d, %kept = dropout(%a, %rate) {stream=1}
  %steps = transpose(%d) {perm=[1,0,2]}
  %begin = broadcast_to(%start) {shape=[N,4]}
  %final, %states = scan(%begin, %steps, %rate, %w) {scanned=1, states=1, stream=2, trips=[3]} {
    graph iteration(input %i: i64[], input %s: f32[N,4], input %x: f32[N,4], input %rate: f32[], input %w: f32[4]) {
      %b = mul(%x, %w)
      %sum = add(%s, %b)
      %e, %mask = dropout(%sum, %rate) {stream=1}
      output s %e
    }
  }
  output y %final
})";

TEST(CompiledRandom, DrawsWhatTheInterpreterDraws) {
  const Graph imported = parse_graph(kModel);
  RecipeSource source;
  for (const char* setting : {"loss.kind=\"mse\"", "optimizer.kind=\"sgd\"", "train.seed=9"}) add_override(source, setting);
  const Recipe recipe = resolve(source);
  TrainingReport report;
  const std::vector<EntryGraph> entries = build_entries(imported, recipe, report);
  const Graph& step = entries.front().graph;
  Session session(compile({imported, onnx::ModelProto(), "g"}, recipe).plan, {.device = "cpu", .threads = 2});

  std::vector<float> ones(4 * 3 * 4, 1), zeros(4 * 4, 0);
  const Tensor x = Tensor::of<float>({4, 3, 4}, std::span<const float>(ones)), target = Tensor::of<float>({4, 4}, std::span<const float>(zeros));
  const Tensor first = Tensor::scalar(std::int64_t{3}), weight = step.find_input("w")->data.value();
  Feeds feeds = {{"x", x}, {"target", target}, {"first_sample", first}, {"learning_rate", Tensor::scalar(0x1p-6)}};  // 16 targets: dividing by their number is exact, too
  const std::vector<std::pair<std::string, TensorView>> views(feeds.begin(), feeds.end());
  double last = -1;
  for (std::int64_t i = 0; i < 4; ++i) {
    session.write("w", weight);  // small whole numbers, so that sums and products are exact
    session.run(plan::kTrainStep, views);
    feeds["random_step"] = Tensor::scalar(i);
    const GraphResults expected = interpret(step, feeds);
    const double loss = expected["loss_sum"].at(0);
    EXPECT_EQ(session.result_tensor("loss_sum").at(0), loss) << "step " << i;
    EXPECT_NE(loss, last) << "every step keeps others";
    last = loss;
    const Tensor w = session.read("w");
    for (std::int64_t k = 0; k < w.element_count(); ++k) EXPECT_EQ(w.at(k), expected["w"].at(k)) << "step " << i << ", weight " << k;
    EXPECT_EQ(session.read("random_step").int_at(0), i + 1);
  }
}

}  // namespace
}  // namespace hone::test
