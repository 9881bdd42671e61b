// Models that were made to break what reads them: impossible sizes, structures that loop, names that are no text. Each is refused with a message,
// in little memory and time (check_error_case).
#include <gtest/gtest.h>

#include "tests/errors/error_case.h"
#include "tests/frontend/test_model.h"

namespace hone::test {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 31;

/// Compiling the model that `change` made of x[N,4] + b[4] ends in an error of the model.
ErrorCase hostile(const char* name, std::vector<std::string> says, std::function<void(TestModel&)> change) {
  const auto prepare = [change](const TempFolder& folder) {
    TestModel model = TestModel::of_node("Add", {"N", 4}, {f32({4}, {1, 2, 3, 4})});
    change(model);
    folder.write("model.onnx", model.proto.SerializeAsString());
  };
  return {name, "hone-compile model.onnx -o plan.hone", 3, std::move(says), prepare};
}

ErrorCase with_input(const char* name, std::vector<std::string> says, std::vector<Extent> shape) {
  return hostile(name, std::move(says), [shape](TestModel& model) {
    model.proto.mutable_graph()->clear_input();
    model.input("x", shape);
  });
}

ErrorCase with_weight(const char* name, std::vector<std::string> says, std::function<void(onnx::TensorProto&)> change) {
  return hostile(name, std::move(says), [change](TestModel& model) { change(*model.proto.mutable_graph()->mutable_initializer(0)); });
}

void set_dims(onnx::TensorProto& tensor, const std::vector<std::int64_t>& dims) { tensor.mutable_dims()->Assign(dims.begin(), dims.end()); }

/// `depth` If nodes inside one another.
void nest(onnx::GraphProto& graph, int depth) {
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(depth == 0 ? "Relu" : "If");
  node.add_input(depth == 0 ? "x" : "c");
  node.add_output("r" + std::to_string(depth));
  graph.add_output()->set_name(node.output(0));
  if (depth == 0) return;
  for (const char* branch : {"then_branch", "else_branch"}) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(branch);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    if (branch[0] == 't') nest(*attribute.mutable_g(), depth - 1);
    else nest(*attribute.mutable_g(), 0);
  }
}

onnx::FunctionProto& add_function(TestModel& model, const std::string& name, const std::vector<std::string>& calls) {
  onnx::FunctionProto& function = *model.proto.add_functions();
  function.set_domain("local");
  function.set_name(name);
  function.add_input("a");
  function.add_output("b" + std::to_string(calls.size()));
  for (const char* domain : {"", "local"}) {
    auto& import = *function.add_opset_import();
    import.set_domain(domain);
    import.set_version(domain[0] == 0 ? 17 : 1);
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    onnx::NodeProto& node = *function.add_node();
    node.set_op_type(calls[i]);
    node.set_domain("local");
    node.add_input(i == 0 ? "a" : "b" + std::to_string(i));
    node.add_output("b" + std::to_string(i + 1));
  }
  return function;
}

void call_function(TestModel& model, const std::string& name) {
  auto& import = *model.proto.add_opset_import();
  import.set_domain("local");
  import.set_version(1);
  model.node(name, {"x"}, {"called"}).proto().set_domain("local");
  model.output("called");
}

const ErrorCase kCases[] = {
    with_input("NegativeExtent", {"HN-0107", "\"x\"", "-3"}, {-3, 4}),
    with_input("TwoTo62Elements", {"HN-0115", "\"x\"", "2^40"}, {kHuge, kHuge}),
    with_input("ElementsBeyondInt64", {"HN-0115", "\"x\""}, {kHuge * 2, kHuge * 2, kHuge * 2}),
    with_input("ExtentOfTheLargestNumber", {"HN-0115", "\"x\""}, {INT64_MAX, 4}),
    with_input("Rank100", {"HN-0115", "100 axes"}, std::vector<Extent>(100, Extent(1))),
    hostile("InputOfAnUnknownType", {"HN-0108", "\"x\"", "99"},
            [](TestModel& model) { model.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(99); }),
    hostile("InputWithoutAType", {"HN-01", "\"x\""}, [](TestModel& model) { model.proto.mutable_graph()->mutable_input(0)->clear_type(); }),
    with_weight("WeightOfNegativeExtent", {"HN-0115", "\"b\"", "-4"}, [](auto& b) { set_dims(b, {-4}); }),
    with_weight("WeightOfTwoTo62Elements", {"HN-0115", "\"b\""},
                [](auto& b) {
                  set_dims(b, {kHuge, kHuge});
                }),
    with_weight("WeightBeyondInt64", {"HN-01", "\"b\""},
                [](auto& b) {
                  set_dims(b, {kHuge * 2, kHuge * 2, kHuge * 2});
                }),
    with_weight("WeightOfRank100", {"HN-01", "\"b\"", "100"}, [](auto& b) { set_dims(b, std::vector<std::int64_t>(100, 1)); }),
    with_weight("WeightOfManyElementsWithoutValues", {"HN-0105", "\"b\"", "no values"},
                [](auto& b) {
                  set_dims(b, {1 << 20, 1 << 15});
                  b.clear_raw_data();
                }),
    with_weight("RawDataTooShort", {"HN-0105", "needs 16 bytes, but raw_data has 12"}, [](auto& b) { b.set_raw_data(std::string(12, 'a')); }),
    with_weight("RawDataTooLong", {"HN-0105", "needs 16 bytes, but raw_data has 1000000"}, [](auto& b) { b.set_raw_data(std::string(1'000'000, 'a')); }),
    with_weight("RawDataOfHalfAnElement", {"HN-0105", "raw_data has 15"}, [](auto& b) { b.set_raw_data(std::string(15, 'a')); }),
    with_weight("ValuesTwice", {"HN-0105", "values twice"}, [](auto& b) { b.add_float_data(1); }),
    with_weight("ValuesOfAnotherType", {"HN-0105", "int64_data"},
                [](auto& b) {
                  b.clear_raw_data();
                  b.add_int64_data(1);
                }),
    with_weight("UnknownElementType", {"HN-0105", "\"b\"", "element type 99"}, [](auto& b) { b.set_data_type(99); }),
    with_weight("NegativeElementType", {"HN-0105", "\"b\""}, [](auto& b) { b.set_data_type(-1); }),
    with_weight("LargestElementType", {"HN-0105", "\"b\""}, [](auto& b) { b.set_data_type(INT32_MAX); }),
    with_weight("ElementTypeThatIsNone", {"HN-0105", "\"b\""}, [](auto& b) { b.set_data_type(0); }),
    with_weight("Strings", {"HN-0105", "strings"},
                [](auto& b) {
                  b.set_data_type(onnx::TensorProto::STRING);
                  b.clear_raw_data();
                }),
    hostile("ResultMadeTwice", {"HN-0106", "\"y\" is made twice"}, [](TestModel& model) { model.node("Relu", {"x"}, {"y"}); }),
    hostile("ResultMadeTwiceByOneNode", {"HN-0106", "made twice"},
            [](TestModel& model) {
              model.node("Split", {"x"}, {"z", "z"}).set("axis", 1);
              model.output("z");
            }),
    hostile("ResultNamedAsAnInput", {"HN-0106", "\"x\" is made twice"}, [](TestModel& model) { model.node("Relu", {"y"}, {"x"}); }),
    hostile("TwoInitializersOfOneName", {"HN-0106", "two initializers named \"b\""}, [](TestModel& model) { model.initializer("b", f32({1}, {1})); }),
    hostile("TwoInputsOfOneName", {"HN-0106", "two inputs named \"x\""}, [](TestModel& model) { model.input("x", {4}); }),
    hostile("TwoOutputsOfOneName", {"HN-0106", "\"y\""}, [](TestModel& model) { model.output("y"); }),
    hostile("NodeThatReadsItself", {"HN-0106", "depend on themselves"},
            [](TestModel& model) {
              model.node("Relu", {"z"}, {"z"});
              model.output("z");
            }),
    hostile("CycleOf10000Nodes", {"HN-0106", "depend on themselves", "more) reads"},
            [](TestModel& model) {
              for (int i = 0; i < 10'000; ++i) model.node("Relu", {"c" + std::to_string(i)}, {"c" + std::to_string((i + 1) % 10'000)});
              model.output("c0");
            }),
    hostile("OutputThatNothingMakes", {"HN-0106", "\"nothing\""}, [](TestModel& model) { model.output("nothing"); }),
    hostile("NamesThatAreNoText", {"HN-0106", "which nothing produces"},
            [](TestModel& model) {
              model.node("Relu", {std::string("\xff\xfe\x80\x1b[31m\n\x00 end", 14)}, {"z\xc3\x28"}).named("\xf0\x28\x8c\xbc\r\n");
              model.output("z\xc3\x28");
            }),
    hostile("NameOfAMegabyte", {"HN-01"}, [](TestModel& model) { model.output(std::string(1 << 20, 'n')); }),
    hostile("OperatorOfAMegabyte", {"HN-0102"},
            [](TestModel& model) {
              model.node(std::string(1 << 20, 'O'), {"x"}, {"z"});
              model.output("z");
            }),
    hostile("BodiesInBodies", {"HN-01"},
            [](TestModel& model) {
              model.input("c", {}, DType::kBool);
              nest(*model.proto.mutable_graph(), 60);
            }),
    hostile("FunctionThatCallsItself", {"HN-01", "again"},
            [](TestModel& model) {
              add_function(model, "again", {"again"});
              call_function(model, "again");
            }),
    hostile("FunctionsInACycle", {"HN-01"},
            [](TestModel& model) {
              add_function(model, "first", {"second"});
              add_function(model, "second", {"third"});
              add_function(model, "third", {"first"});
              call_function(model, "first");
            }),
    hostile("FunctionsThatGrow", {"HN-01"},
            [](TestModel& model) {
              for (int i = 0; i < 50; ++i) {
                const std::string next = "f" + std::to_string(i + 1);
                add_function(model, "f" + std::to_string(i), {next, next});
              }
              onnx::NodeProto& last = *add_function(model, "f50", {"Relu"}).mutable_node(0);
              last.clear_domain();
              call_function(model, "f0");
            }),
    hostile("AttributeOfMillions", {"HN-01", "Transpose"},
            [](TestModel& model) {
              model.node("Transpose", {"x"}, {"z"}).set("perm", std::vector<std::int64_t>(2'000'000, 1));
              model.output("z");
            }),
    hostile("AttributeOfAnotherType", {"HN-0104", "axis"},
            [](TestModel& model) {
              model.node("Softmax", {"x"}, {"z"}).set("axis", "first");
              model.output("z");
            }),
    hostile("OpsetOfNothing", {"HN-0103"}, [](TestModel& model) { model.proto.clear_opset_import(); }),
    hostile("NegativeOpset", {"HN-0103"}, [](TestModel& model) { model.proto.mutable_opset_import(0)->set_version(-17); }),
    hostile("ThousandsOfProblems", {"HN-0106", "more problems"},
            [](TestModel& model) {
              for (int i = 0; i < 5'000; ++i) {
                model.node("Relu", {"missing" + std::to_string(i)}, {"m" + std::to_string(i)});
                model.output("m" + std::to_string(i));
              }
            }),
};

HONE_ERROR_CASES(HostileStructure, kCases);

}  // namespace
}  // namespace hone::test
