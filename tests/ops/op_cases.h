// The cases of every op: what the tests of infer, interpreter, gradients and kernels run over. A new case is one `add` in the file of its family,
// a new op a few of them.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor.h"
#include "ir/op.h"
#include "ir/ops/ops.h"

namespace hone::test {

inline constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
/// Why a case is not differentiated.
inline constexpr std::string_view kAboutNan = "the case is about NaN and infinity";

/// Symbolic extents for cases, and what they are when a case runs: kN is 3, kM 2, kEmpty 0.
inline const Dim kN = Dim::symbol("N"), kM = Dim::symbol("M"), kEmpty = Dim::symbol("Empty");
const DimBindings& case_sizes();

/// One operand of a case. Data are seeded: no two elements of a float operand are equal, none is 0, and those of two operands differ.
struct Operand {
  Type type;
  double low = -2, high = 2;        ///< floats lie strictly between; integers from low up to high, both included
  std::vector<double> values = {};  ///< these elements instead
  bool is_constant = false;         ///< a constant of the graph rather than an input
  bool is_absent = false;           ///< an optional operand that is left out
};
Operand f32(Shape shape, double low = -2, double high = 2);
Operand f64(Shape shape, double low = -2, double high = 2);
Operand whole(DType dtype, Shape shape, double low, double high);
Operand bools(Shape shape);
/// Exactly these elements.
Operand given(DType dtype, Shape shape, std::vector<double> values);
/// The data of an operand of a case.
Tensor tensor_of(const Operand& operand, std::size_t position, const DimBindings& sizes = case_sizes());
inline Operand given(Shape shape, std::vector<double> values) { return given(DType::kF32, std::move(shape), std::move(values)); }
/// `operand` as a constant of the graph: what is no variable to the gradient test.
Operand constant(Operand operand);
Operand absent();

struct OpCase {
  const OpDef* op;
  std::string says;  ///< what the case is about
  std::vector<Operand> operands;
  Attrs attrs;
  std::vector<Shape> shapes = {};              ///< of the results, where the case states them
  std::vector<double> expected = {};           ///< elements of the first result
  std::vector<double> expected_gradient = {};  ///< of the sum of the first result, w.r.t. operand 0: for kinks and ties, where differences mean nothing
  std::string_view no_gradient = {};           ///< why the gradient test leaves the case out
  std::vector<std::shared_ptr<const Graph>> bodies = {};  ///< of a region op
  std::size_t varying_results = 99;            ///< how many results, from the first, the gradient test looks at; others are constants to it by definition

  std::string name() const { return std::string(op->name) + ": " + says; }
};

/// Collects cases; each member function completes the case that was added last.
class Cases {
 public:
  Cases& add(const OpDef& op, std::string says, std::vector<Operand> operands, Attrs attrs = {});
  Cases& gives(Shape shape) { return last().shapes.push_back(std::move(shape)), *this; }
  Cases& equals(std::vector<double> elements) { return last().expected = std::move(elements), *this; }
  Cases& slopes(std::vector<double> gradient) { return last().expected_gradient = std::move(gradient), *this; }
  Cases& not_differentiated(std::string_view because) { return last().no_gradient = because, *this; }
  Cases& with_body(Graph body) { return last().bodies.push_back(std::make_shared<Graph>(std::move(body))), *this; }
  Cases& varies_in(std::size_t results) { return last().varying_results = results, *this; }
  std::vector<OpCase> take() && { return std::move(cases_); }

 private:
  OpCase& last() { return cases_.back(); }
  std::vector<OpCase> cases_;
};

// One function a family, each in its own file.
void add_elementwise_cases(Cases& cases);
void add_function_cases(Cases& cases);
void add_compare_cases(Cases& cases);
void add_shape_cases(Cases& cases);
void add_reduce_cases(Cases& cases);
void add_generate_cases(Cases& cases);
void add_index_cases(Cases& cases);
void add_matmul_cases(Cases& cases);
void add_conv_cases(Cases& cases);
void add_pool_cases(Cases& cases);
void add_normalization_cases(Cases& cases);
void add_attention_cases(Cases& cases);
void add_recurrent_cases(Cases& cases);
void add_loss_cases(Cases& cases);
void add_optimizer_cases(Cases& cases);
void add_collective_cases(Cases& cases);
void add_spatial_cases(Cases& cases);
void add_sort_cases(Cases& cases);
void add_region_cases(Cases& cases);
void add_quantize_cases(Cases& cases);

/// All of them.
std::span<const OpCase> op_cases();

/// Must central differences of its float results agree with differentiate()? Ops with a formula, and lowerings without a reason to stop.
bool is_differentiable(const OpDef& op);

/// A case as a graph: operands are inputs x0, x1, ..., results outputs y0, y1, ...
Graph graph_of(const OpCase& op_case);
/// The data of the inputs of graph_of(op_case). f32 operands are given as f64 in kDouble, so that differences can be fed, too.
std::map<std::string, Tensor, std::less<>> feeds_of(const OpCase& op_case);

}  // namespace hone::test
