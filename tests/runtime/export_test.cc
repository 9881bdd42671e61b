// Trained weights into the model that came in, and back.
#include "runtime/train/export_onnx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/collective/thread_communicators.h"
#include "runtime/train/json_line.h"
#include "runtime/train/replica_runner.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using test::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

onnx::TensorProto* add_initializer(onnx::ModelProto& model, const std::string& name, const Tensor& value) {
  onnx::TensorProto* tensor = model.mutable_graph()->add_initializer();
  store_tensor(tensor, value);
  tensor->set_name(name);
  return tensor;
}

/// w f32[2] (stripped), h f16[2] (stripped), shape i64[1] with its values, a Constant node c (stripped).
onnx::ModelProto skeleton() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.set_producer_name("maker");
  model.add_opset_import()->set_version(17);
  add_initializer(model, "w", Tensor::zeros(DType::kF32, {2}))->clear_raw_data();
  add_initializer(model, "h", Tensor::zeros(DType::kF16, {2}))->clear_raw_data();
  add_initializer(model, "shape", Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{-1}));
  onnx::NodeProto* node = model.mutable_graph()->add_node();
  node->set_op_type("Constant");
  node->add_output("c");
  onnx::AttributeProto* value = node->add_attribute();
  value->set_name("value");
  value->set_type(onnx::AttributeProto::TENSOR);
  store_tensor(value->mutable_t(), Tensor::zeros(DType::kF32, {1, 2}));
  value->mutable_t()->clear_raw_data();
  return model;
}

std::vector<std::byte> bytes_of(const onnx::ModelProto& model) {
  const std::string text = model.SerializeAsString();
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

plan::Persistent persistent(const std::string& name, std::vector<std::int64_t> shape, float start) {
  const auto count = static_cast<std::size_t>(checked_element_count(shape));
  return {name, plan::Persistent::Role::kWeight, true, true, Tensor::of<float>(std::move(shape), std::vector<float>(count, start))};
}

plan::Plan plan_with(float start) {
  plan::Plan plan;
  plan::Program program;
  program.target = "cpu";
  program.persistents = {persistent("w", {2}, start), persistent("h", {2}, start + 1), persistent("c", {1, 2}, start + 2)};
  plan::Persistent moment = persistent("w:momentum", {2}, 9);
  moment.in_model = false;
  moment.role = plan::Persistent::Role::kState;
  program.persistents.push_back(moment);
  plan.programs.push_back(program);
  plan.onnx_model = bytes_of(skeleton());
  return plan;
}

TEST(ExportOnnx, OnlyTheWeightsDifferFromTheModelThatCameIn) {
  const plan::Plan plan = plan_with(0.5f);
  const Session session(plan, {});
  onnx::ModelProto model = trained_model(plan.onnx_model, session.program(), [&](const std::string& name) { return session.read(name); });
  EXPECT_EQ(tensor_of(model.graph().initializer(0), ".", {}).at(1), 0.5);
  const Tensor half = tensor_of(model.graph().initializer(1), ".", {});
  EXPECT_EQ(half.dtype(), DType::kF16);
  EXPECT_EQ(half.at(0), 1.5);
  EXPECT_EQ(tensor_of(model.graph().node(0).attribute(0).t(), ".", {}).at(0), 2.5);
  for (onnx::TensorProto* tensor : {model.mutable_graph()->mutable_initializer(0), model.mutable_graph()->mutable_initializer(1),
                                    model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_t()})
    tensor->clear_raw_data();
  EXPECT_EQ(model.SerializeAsString(), skeleton().SerializeAsString());
}

TEST(ExportOnnx, WhatIsWrittenLoadsIntoAnotherSession) {
  const TempFolder folder;
  const plan::Plan plan = plan_with(0.25f);
  Session session(plan, {});
  export_onnx(plan.onnx_model, session, folder / "trained.onnx");
  Session other(plan_with(7), {});
  load_weights(other, Recipe{}, folder / "trained.onnx");
  EXPECT_EQ(other.read("w").at(0), 0.25);
  EXPECT_EQ(other.read("h").at(0), 1.25);
  EXPECT_EQ(other.read("c").at(1), 2.25);
  EXPECT_EQ(other.read("w:momentum").at(0), 9);
}

TEST(LoadWeights, NamesAllThatDoNotFitAndChangesNothing) {
  const TempFolder folder;
  onnx::ModelProto model = skeleton();
  store_tensor(model.mutable_graph()->mutable_initializer(0), Tensor::zeros(DType::kF32, {3}));
  store_tensor(model.mutable_graph()->mutable_initializer(1), Tensor::zeros(DType::kI32, {2}));
  model.mutable_graph()->mutable_initializer(0)->set_name("w");
  model.mutable_graph()->mutable_node(0)->set_op_type("Identity");
  save_model(model, folder / "other.onnx");
  Session session(plan_with(7), {});
  try {
    load_weights(session, Recipe{}, folder / "other.onnx");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 10);
    EXPECT_THAT(error.what(), HasSubstr("\"w\" is f32[3] there, and f32[2] in the plan"));
    EXPECT_THAT(error.what(), HasSubstr("\"h\" is i32[2] there"));
    EXPECT_THAT(error.what(), HasSubstr("\"c\" is missing there"));
  }
  EXPECT_EQ(session.read("w").at(0), 7);
}

TEST(ExportOnnx, PlanWhoseModelLacksAWeightIsDamaged) {
  plan::Plan plan = plan_with(1);
  plan.programs[0].persistents[0].name = "v";
  const Session session(plan, {});
  expect_error(Code::kPlanFormat, "has no tensor \"v\"",
               [&] { trained_model(plan.onnx_model, session.program(), [&](const std::string& name) { return session.read(name); }); });
  plan.programs[0].persistents.erase(plan.programs[0].persistents.begin());
  const Session fewer(plan, {});
  expect_error(Code::kPlanFormat, "the tensor \"w\" of the model in the plan has no values",
               [&] { trained_model(plan.onnx_model, fewer.program(), [&](const std::string& name) { return fewer.read(name); }); });
}

/// Two processes that hold a plan's weights, and save them as hone-run does: the first one writes.
struct TwoThatSave {
  using Meanwhile = std::function<void(Session&)>;
  std::array<Meanwhile, 2> before;       ///< in each, when all have the first one's weights
  Meanwhile between = [](Session&) {};  ///< in the first, when it has read them
  std::array<std::string, 2> said = {};

  void save(const std::string& path) {
    const plan::Plan plan = plan_with(0.5f);
    ThreadCommunicators processes(2);
    const auto run = [&](int rank) {
      Replicas replicas(plan, {.processes = &processes.of(rank)}, {});
      ReplicaRunner runner(replicas, "");
      runner.compare_every(100);
      runner.set_step(7);
      runner.save({});
      before[static_cast<std::size_t>(rank)](replicas.session());
      const auto keep = [&](const StateReader& reader) {
        const auto confirm = [&] {
          between(replicas.session());
          reader.confirm();
        };
        save_trained(Recipe{}, plan.onnx_model, replicas.session(), path, {reader.read, confirm});
      };
      try {
        runner.save(rank == 0 ? StepRunner::KeepState(keep) : StepRunner::KeepState(), StepRunner::Kept::kModel);
      } catch (const Error& error) { said[static_cast<std::size_t>(rank)] = error.what(); }
    };
    std::jthread second(run, 1);
    run(0);
  }
};

void nothing(Session&) {}
void flip(Session& session) { session.write("h", Tensor::of<float>({2}, std::vector<float>{1.5F, 1.5000001F})); }
void flip_back(Session& session) { session.write("h", Tensor::of<float>({2}, std::vector<float>{1.5F, 1.5F})); }

TEST(SaveTrained, CountsWhereAllReplicasHaveTheseWeights) {
  const TempFolder folder;
  for (const char* name : {"trained.onnx", "trained.safetensors"}) {
    TwoThatSave both{.before = {nothing, nothing}};
    both.save(folder / name);
    EXPECT_THAT(both.said, ::testing::Each(""));
    EXPECT_THAT(folder.names(), ::testing::Contains(name));
  }
}

/// Whichever changed, and also where what was read is no longer what stands in memory.
TEST(SaveTrained, LeavesNoFileWhereAReplicaHasOtherWeights) {
  const TempFolder folder;
  for (const char* name : {"trained.onnx", "trained.safetensors"})
    for (TwoThatSave both : {TwoThatSave{.before = {flip, nothing}}, TwoThatSave{.before = {nothing, flip}}, TwoThatSave{.before = {flip, nothing}, .between = flip_back}}) {
      both.save(folder / name);
      for (const std::string& said : both.said) EXPECT_THAT(said, AllOf(HasSubstr("rank 1 of 2 has other weights"), HasSubstr("in step 7")));
      EXPECT_THAT(folder.names(), ::testing::IsEmpty());
    }
}

TEST(JsonLine, EscapesAndKeepsAllDigits) {
  EXPECT_EQ(JsonLine().text("a\"b", "x\n\\\xff\xc3\xa9").integer("i", -3).number("loss", 0.1f).number("nan", 0.0 / 0.0).str(),
            "{\"a\\\"b\":\"x\\u000a\\\\\\ufffd\xc3\xa9\",\"i\":-3,\"loss\":0.10000000149011612,\"nan\":null}");
}

}  // namespace
}  // namespace hone
