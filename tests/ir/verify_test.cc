// verify() refuses graphs that were broken on purpose. Graphs cannot be built wrong, so the tests break them behind the Builder's back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/op.h"
#include "ir/ops/ops.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace hone {
namespace {

using testing::HasSubstr;

class VerifyTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NO_THROW(verify(graph)); }

  Node& node(std::size_t i) { return const_cast<Node&>(graph.node(NodeId(i))); }
  Value& value(std::size_t i) { return const_cast<Value&>(graph.value(ValueId(i))); }
  template <typename T>
  T& change(const T& item) {
    return const_cast<T&>(item);
  }

  std::string error() const {
    try {
      verify(graph);
    } catch (const Error& error) {
      EXPECT_EQ(error.diags()[0].code, Code::kInvalidGraph);
      return error.what();
    }
    return "no error";
  }

  // values: x 0, w 1, step 2, y 3, z 4
  Graph graph = parse_graph(R"(graph main(
  input %x: f32[N,4],
  weight %w: f32[4,4],
  state %step: i64[] = 0) {
  %y = matmul(%x, %w)  // at "fc"
  %z = exp(%y)
  output "z" %z
  alias %w <- %w
})");
};

TEST_F(VerifyTest, ShowsTheNodeAndTheLinesAroundIt) {
  value(4).type.shape[1] = 5;
  EXPECT_THAT(error(), HasSubstr("V5: result 0 of exp is f32[N,5], infer gives f32[N,4]"));
  EXPECT_THAT(error(), HasSubstr("    %y: f32[N,4] = matmul(%x, %w)  // at \"fc\"\n>   %z: f32[N,5] = exp(%y)\n"));
}

TEST_F(VerifyTest, OperandThatIsNoValue) {
  node(1).operands[0] = ValueId(77);
  EXPECT_THAT(error(), HasSubstr("V1: operand 0 of exp is no value"));
}
TEST_F(VerifyTest, ResultWithAnotherProducer) {
  value(4).producer = NodeId(0);
  EXPECT_THAT(error(), HasSubstr("V1: result 0 of exp names another producer"));
}
TEST_F(VerifyTest, OneResultOfTwoNodes) {
  node(1).results[0] = ValueId(3);
  EXPECT_THAT(error(), HasSubstr("V1: result 0 of exp is no value, or one that is defined twice"));
}
TEST_F(VerifyTest, ResultReadBeforeItsNode) {
  node(0).operands[0] = ValueId(4);
  EXPECT_THAT(error(), HasSubstr("V2: operand 0 of matmul is defined after it"));
}
TEST_F(VerifyTest, MissingOperand) {
  node(0).operands.pop_back();
  EXPECT_THAT(error(), HasSubstr("V3: matmul: operand 1 (b) is missing"));
}
TEST_F(VerifyTest, TooManyOperands) {
  node(1).operands.push_back(ValueId(3));
  EXPECT_THAT(error(), HasSubstr("V3: exp takes 1 operands, found 2"));
}
TEST_F(VerifyTest, AttributeThatTheOpDoesNotHave) {
  node(1).attrs.set(kTransA = true);
  EXPECT_THAT(error(), HasSubstr("V4: exp has no attribute \"ta\""));
}
TEST_F(VerifyTest, AttributeOfAnotherKind) {
  node(0).attrs.set({&kTransA, std::int64_t{1}});
  EXPECT_THAT(error(), HasSubstr("V4: attribute ta of matmul is of another kind"));
}
TEST_F(VerifyTest, OperandsThatInferRefuses) {
  value(1).type.shape[0] = 3;
  EXPECT_THAT(error(), HasSubstr("V5: matmul: "));
}
TEST_F(VerifyTest, DataOfAnotherType) {
  change(graph.inputs()[2]).data = Tensor::scalar(1.0F);
  EXPECT_THAT(error(), HasSubstr("V6: input \"step\" of type i64[] has data of type f32[]"));
}
TEST_F(VerifyTest, TwoInputsOfOneName) {
  change(graph.inputs()[1]).name = "x";
  EXPECT_THAT(error(), HasSubstr("V7: two inputs are named \"x\""));
}
TEST_F(VerifyTest, FedInputWithoutAName) {
  change(graph.inputs()[0]).name = "";
  EXPECT_THAT(error(), HasSubstr("V7: an input that is fed has no name"));
}
TEST_F(VerifyTest, AliasOfAFedInput) {
  change(graph.aliases()[0]).state = ValueId(0);
  EXPECT_THAT(error(), HasSubstr("V8: an alias of what is neither a weight nor a state"));
}
TEST_F(VerifyTest, AliasOfAnotherType) {
  change(graph.aliases()[0]).value = ValueId(0);
  EXPECT_THAT(error(), HasSubstr("V8: \"w\" of type f32[4,4] is replaced by f32[N,4]"));
}
TEST_F(VerifyTest, StateReplacedTwice) {
  change(graph.aliases()).push_back(graph.aliases()[0]);
  EXPECT_THAT(error(), HasSubstr("V8: \"w\" is replaced twice"));
}
TEST_F(VerifyTest, NodeThatReadsALaterPart) {
  node(0).part = Part::kBackward;
  EXPECT_THAT(error(), HasSubstr("V9: exp, of part forward, reads operand 0 from a later part"));
}
TEST_F(VerifyTest, KnownContentsOfAFloat) {
  value(3).known = {1};
  EXPECT_THAT(error(), HasSubstr("V10: known contents of f32[N,4]"));
}
TEST_F(VerifyTest, KnownContentsOfAnotherCount) {
  value(2).known = {1, 2};
  EXPECT_THAT(error(), HasSubstr("V10: 2 known contents of i64[]"));
}
TEST_F(VerifyTest, BodyOfAnOpThatIsNoRegion) {
  node(1).bodies.push_back(std::make_unique<Graph>());
  EXPECT_THAT(error(), HasSubstr("V11: exp has body graphs, but is no region"));
  EXPECT_THAT(print(graph), HasSubstr("exp(%y) {\n    graph \"\"() {\n    }\n  }\n"));
}
TEST_F(VerifyTest, TooManyAxes) {
  value(0).type.shape.assign(33, 1);
  EXPECT_THAT(error(), HasSubstr("V12: 33 axes"));
}

TEST(PrintAround, MarksTheNode) {
  const Graph graph = parse_graph("graph g(input %x: f32[N]) {\n%a = exp(%x)\n%b = exp(%a)\n%c = exp(%b)\n}\n");
  EXPECT_EQ(print_around(graph, NodeId(1), 1), "    %a: f32[N] = exp(%x)\n>   %b: f32[N] = exp(%a)\n    %c: f32[N] = exp(%b)\n");
}

}  // namespace
}  // namespace hone
