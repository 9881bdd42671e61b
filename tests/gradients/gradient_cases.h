// The cases by which the gradient of every ONNX operator is proved: each is a model of one node (or a few), imported as a user's, whose gradients must
// agree with central differences in double. A new case is one `add` in the file of its family; see README.md.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/attributes.h"
#include "tests/frontend/test_model.h"

namespace hone::test {

using Floats = std::vector<float>;

/// One input of a case. Without values its elements are seeded: floats all differ, from each other and from 0.
struct GradientInput {
  enum class Kind {
    kVariable,  ///< float: p is differentiated by it
    kFed,       ///< an input, too, but no variable
    kConstant,  ///< an initializer
    kAbsent,
  };
  Kind kind = Kind::kVariable;
  DType dtype = DType::kF32;
  std::vector<Extent> shape;        ///< symbols: "N" is 3, "M" 2
  double low = -2, high = 2;        ///< floats lie strictly between; integers from low up to high, both included
  std::vector<double> values = {};  ///< these elements instead
};
/// A variable.
GradientInput x(std::vector<Extent> shape, double low = -2, double high = 2);
GradientInput x_of(std::vector<Extent> shape, std::vector<double> values);
/// `input` in another float type.
GradientInput of_type(DType dtype, GradientInput input);
/// Fed, no variable: integers, indices, conditions.
GradientInput whole(std::vector<Extent> shape, double low, double high, DType dtype = DType::kI64);
GradientInput given(DType dtype, std::vector<Extent> shape, std::vector<double> values);
/// `input` as an initializer, known when compiling; `fed` as an input that is no variable.
GradientInput constant(GradientInput input);
GradientInput fed(GradientInput input);
/// An initializer of int64, as shapes, axes and starts are given.
GradientInput numbers(std::vector<std::int64_t> values);
GradientInput absent();

/// {"axis", 1}, {"alpha", 0.5}, {"mode", "linear"}, {"pads", Ints{1, 1}}, {"scales", Floats{1, 2}}.
struct GradientAttribute {
  std::string name;
  std::variant<std::int64_t, double, std::string, Ints, Floats> value;
};

struct GradientCase {
  std::string op;    ///< ONNX's name
  std::string says;  ///< what the case is about
  std::vector<GradientInput> inputs;
  std::vector<GradientAttribute> attributes;
  std::int64_t opset = 17;
  std::size_t outputs = 1;
  std::vector<std::size_t> left_out;  ///< outputs without a name
  std::size_t varying_outputs = 99;   ///< how many outputs, from the first, p weighs; others are constants to the gradient by definition
  /// Makes nodes other than one `op` of inputs x0, x1, ... and outputs y0, y1, ...
  std::function<void(TestModel&)> nodes;

  std::string name() const { return op + ": " + says; }
};

/// Collects cases; each member function but `add` completes the case that was added last.
class GradientCases {
 public:
  GradientCases& add(std::string op, std::string says, std::vector<GradientInput> inputs, std::vector<GradientAttribute> attributes = {});
  GradientCases& opset(std::int64_t opset) { return last().opset = opset, *this; }
  GradientCases& outputs(std::size_t count) { return last().outputs = count, *this; }
  GradientCases& leaves_out(std::size_t output) { return last().left_out.push_back(output), *this; }
  GradientCases& varies_in(std::size_t count) { return last().varying_outputs = count, *this; }
  GradientCases& nodes(std::function<void(TestModel&)> make) { return last().nodes = std::move(make), *this; }
  std::vector<GradientCase> take() && { return std::move(cases_); }

 private:
  GradientCase& last() { return cases_.back(); }
  std::vector<GradientCase> cases_;
};

// One function a family, each in its own file.
void add_arithmetic_cases(GradientCases& cases);
void add_activation_cases(GradientCases& cases);
void add_function_cases(GradientCases& cases);
void add_cast_cases(GradientCases& cases);
void add_reduce_cases(GradientCases& cases);
void add_cumulative_cases(GradientCases& cases);
void add_shape_cases(GradientCases& cases);
void add_slice_cases(GradientCases& cases);
void add_index_cases(GradientCases& cases);
void add_select_cases(GradientCases& cases);
void add_matmul_cases(GradientCases& cases);
void add_einsum_cases(GradientCases& cases);
void add_conv_cases(GradientCases& cases);
void add_pool_cases(GradientCases& cases);
void add_spatial_cases(GradientCases& cases);
void add_normalization_cases(GradientCases& cases);
void add_attention_cases(GradientCases& cases);
void add_loss_cases(GradientCases& cases);
void add_signal_cases(GradientCases& cases);
void add_recurrent_cases(GradientCases& cases);
void add_control_flow_cases(GradientCases& cases);

/// All of them.
std::span<const GradientCase> gradient_cases();

/// The operators of opset 17's default domain that are differentiable in floats, and those that later opsets added.
std::span<const std::string_view> opset17_operators();
std::span<const std::string_view> later_operators();
/// Those with bodies, of which any gradient may be asked.
std::span<const std::string_view> control_flow_operators();

/// A case as a model: inputs x0, x1, ... (c0, c1, ... where they are no variables), outputs y0, y1, ...
TestModel model_of(const GradientCase& one);
Feeds feeds_of(const GradientCase& one);

}  // namespace hone::test
