// Models that were exported for one size of the batch, as exporters do unless they are told otherwise, and are to be trained with another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx/node.h"

namespace hone::onnx {

struct FreeBatch {
  Dim size;                   ///< a symbol
  std::int64_t exported = 1;  ///< what the file has for it
};

/// The first extent of every input that has axes and is no initializer; nothing if they differ or one of them has a name.
std::optional<std::int64_t> fixed_batch(const GraphProto& graph);

/// While it lives, inputs and outputs that begin with the batch that the file has begin with the symbol `name` instead.
class FreedInputs {
 public:
  FreedInputs(GraphProto& graph, std::int64_t exported, const std::string& name);
  ~FreedInputs();
  FreedInputs(const FreedInputs&) = delete;
  FreedInputs& operator=(const FreedInputs&) = delete;

 private:
  std::vector<TensorShapeProto::Dimension*> freed_;
  std::int64_t exported_;
};

/// Where an operand has the exported batch written into it, it follows the batch: the shape of a Reshape whose data have the batch in one extent, one row that
/// is concatenated to each sample, the first state of a recurrent layer. Other nodes are left as they are.
void fit_to_batch(ImportNode& node, const FreeBatch& batch);

/// "" where the freed graph's outputs are those of the fixed one for its batch, `asked`, or else the first, is one of samples, and no node makes something of
/// the samples that has no batch, such as the first of them, or takes samples by numbers that are not counted. Else what is not so.
std::string why_not_free(const Graph& freed, const Graph& fixed, const std::string& asked, const FreeBatch& batch);

}  // namespace hone::onnx
