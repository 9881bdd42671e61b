// hone-compile --why NODE: what became of one node of the model, from the file to the step that runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/onnx_file.h"
#include "passes/choice.h"
#include "passes/pass_log.h"
#include "passes/pipeline.h"
#include "runtime/plan/plan.h"

namespace hone {

/// Told piece by piece, while the model is compiled. It follows the first entry: the training step, or, where nothing is trained, the prediction.
class NodeStory {
 public:
  /// `node` as messages name it. Throws Error kUsage, with the nearest name, for one that the model does not have.
  NodeStory(std::string node, const onnx::ModelProto& proto, const Graph& imported);

  /// The entry as it was built, before any pass.
  void built(const EntryGraph& entry);
  PassLog& log() { return log_; }
  /// And as it is scheduled.
  void prepared(const EntryGraph& entry, const Target& target, const PassChoice& passes);
  /// `entry` is of the same name; sizes are told for `batch` samples, where they follow from that.
  void scheduled(const plan::Entry& entry, const std::vector<plan::Persistent>& persistents, const std::string& batch_symbol, std::int64_t batch);

  std::string text() const;

 private:
  void add(std::string heading, std::vector<std::string> lines);

  std::string node_;
  PassLog log_;
  std::string entry_;  // its name
  std::vector<std::string> weights_;  // that the node reads
  struct Chapter {
    std::string heading;
    std::vector<std::string> lines;
  };
  std::vector<Chapter> chapters_;
};

}  // namespace hone
