// Models that carry their training: ONNX files with TrainingInfoProto, written down in a test.
#pragma once

#include <string>
#include <vector>

#include "tests/frontend/test_model.h"

namespace hone::test {

/// y f32[N,2] = x f32[N,3] times w plus b.
TestModel linear_model();
/// Four samples of x and of what y should be.
Tensor linear_x();
Tensor linear_targets();

/// Puts a TrainingInfoProto with the graph of `algorithm` and these updates (initializer, value) into `model`; their values become its outputs.
void add_algorithm(TestModel& model, TestModel algorithm, const std::vector<std::pair<std::string, std::string>>& updates);
void add_update(TestModel& model, const std::string& initializer, const std::string& value);

/// The algorithm's graph up to the gradients dw and db of loss = mean((y - t)^2) for an input t like y, which is an output.
TestModel mean_square_gradients();

/// linear_model() that trains with `optimizer` of ai.onnx.preview.training, a learning rate R of 0.1, and a count T of updates, i64, that begins with 0. `states`: how many
/// the optimizer keeps for each tensor: "v_w" and "v_b", "h_w" and "h_b", which begin with 0. The optimizer is the last node of the algorithm but one.
TestModel trained_by(const std::string& optimizer, std::size_t states);
/// The same by plain nodes: w - R dw.
TestModel trained_by_descent();
/// The algorithm's node of that operator, to set attributes.
TestNode algorithm_node(TestModel& model, const std::string& op_type);

/// Losses before each of four steps over all four samples, and the weights after them.
struct Trajectory {
  std::vector<double> losses, w, b;
};
// Computed by numpy in double from the formulas of the operators' documentation (onnx 1.22), and dloss/dw = x^T 2(y - t)/8:
//   Momentum: alpha 0.9, beta 0.5, norm_coefficient 0.01, standard; Adam: defaults; Adagrad: decay_factor 0.1
Trajectory by_descent();
Trajectory by_momentum();
Trajectory by_adam();
Trajectory by_adagrad();

}  // namespace hone::test
