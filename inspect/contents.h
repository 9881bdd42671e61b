// Any file of ours, loaded: what hone-dump shows and compares.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "frontend/onnx/import.h"
#include "ir/graph.h"
#include "runtime/plan/plan.h"

namespace hone {

/// A tensor of a file. Its elements are read when they are asked for.
struct StoredTensor {
  std::string name;
  std::string file;  ///< in a checkpoint's folder the file that it is in: "model.safetensors"
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
  std::function<Tensor()> read;
};

struct Contents {
  enum class Kind : std::uint8_t {
    kModel,       ///< .onnx
    kGraph,       ///< .hir
    kPlan,        ///< .hone
    kCheckpoint,  ///< a folder that a run wrote
    kTensors,     ///< .safetensors
  };
  Kind kind = Kind::kModel;
  std::string path;
  std::optional<onnx::Imported> model = {};   ///< of kModel
  std::optional<Graph> graph = {};            ///< of kGraph
  std::optional<plan::Plan> plan = {};        ///< of kPlan
  std::vector<StoredTensor> tensors = {};     ///< of kCheckpoint and kTensors; of a plan and a model their weights and states with the first values
  std::string state = {};                     ///< of kCheckpoint: state.json
};

/// "model", "graph", "plan", "checkpoint", "tensors"
std::string_view to_string(Contents::Kind kind);

/// By the ending of the name, or because it is a folder with a manifest. Throws Error kUsage for a name that says nothing, and what reading such a file throws.
Contents load_contents(const std::string& path);

/// The plan's program for `target`, "": the first. Throws Error kUsage where it has none.
const plan::Program& find_program(const plan::Plan& plan, const std::string& target);
/// What the plan keeps of a program, its text by the name of the stage: what is the same for all programs, too.
std::map<std::string, const std::string*> stages_of(const plan::Plan& plan, const plan::Program& program);
/// The text of one of them, or null.
const std::string* find_stage(const plan::Plan& plan, const plan::Program& program, const std::string& stage);

/// The stage that is meant where none is named: the training step's graph, or else what the plan predicts with; "" for what has no stages.
std::string default_stage(const Contents& contents);
std::string default_stage(const plan::Plan& plan);
/// The entry of which `stage` is the schedule: of "eval_step.schedule" eval_step, of "schedule" the one of default_stage(); "" for another stage. No plan keeps it: it is in its entries.
std::string scheduled_entry(const plan::Plan& plan, const std::string& stage);
/// The text of a stage of the plan's program for `target`. Throws Error kUsage, listing the stages, where it has none of that name.
std::string stage_text(const plan::Plan& plan, const std::string& stage, const std::string& target = "");
/// The graph of a model or a .hir file, or a stage of a plan ("": default_stage()). Throws Error kUsage where there is none: for tensors, for a stage that is no graph.
Graph graph_of(const Contents& contents, const std::string& stage, const std::string& target = "");

}  // namespace hone
