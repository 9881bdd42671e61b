// hone-compile --why NODE: what became of one node of the model, from the file to the step that runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/fuse.h"
#include "formats/onnx_file.h"
#include "passes/choice.h"
#include "passes/pass_log.h"
#include "passes/pipeline.h"
#include "runtime/plan/plan.h"

namespace hone {

/// Told piece by piece, while the model is compiled. How it is built and which passes change it, is told of the first entry (the training step, or, where nothing is trained, the prediction) for the
/// first target; what runs it of all entries that are told, for all targets, bodies of loops and branches included.
class NodeStory {
 public:
  /// `node` as messages name it. Throws Error kUsage, with the nearest name, for one that the model does not have.
  NodeStory(std::string node, const onnx::ModelProto& proto, const Graph& imported);

  /// The first entry as it was built, before any pass; whether there are several targets.
  void built(const EntryGraph& entry, bool several_targets);
  PassLog& log() { return log_; }
  /// An entry ready to be scheduled; the first one first.
  void prepared(const EntryGraph& entry, const Target& target, const PassChoice& passes);
  /// An entry as it is scheduled; sizes are told for `batch` samples, where they follow from that.
  void scheduled(const plan::Entry& entry, const std::string& target, const std::vector<plan::Persistent>& persistents, const std::string& batch_symbol, std::int64_t batch);

  std::string text() const;

 private:
  /// What sizes and buffers of an entry are told with.
  struct Around {
    const std::vector<plan::Persistent>& persistents;
    const std::string& batch_symbol;
    std::int64_t batch;
  };

  void add(std::string heading, std::vector<std::string> lines);
  void tell_passes();
  void tell_fusion(const Fusion& fusion, const std::string& where, std::vector<std::string>& lines) const;
  void tell_steps(const plan::Entry& entry, const std::string& where, const Around& around, std::vector<std::string>& lines, std::vector<std::string>& updates) const;

  std::string node_;
  PassLog log_;
  std::string entry_;  // the first one's name
  bool several_targets_ = false, passes_told_ = false;
  std::vector<std::string> weights_;  // that the node reads
  struct Chapter {
    std::string heading;
    std::vector<std::string> lines;
  };
  std::vector<Chapter> chapters_;
};

}  // namespace hone
