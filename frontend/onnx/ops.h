// The table of importers: an ONNX operator's name and the function that writes its node in our ops. An operator whose OpDef names it (`.onnx`) and
// that has no attributes needs no row. Functions see the newest form of the node only (frontend/onnx/versions.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fixed_list.h"
#include "frontend/onnx/node.h"

namespace hone::onnx {

/// Returns the results in the node's order; an absent optional result may be left out or invalid.
using ImportFn = std::vector<Val> (*)(const ImportNode&);

struct Importer {
  std::string_view name;
  ImportFn import;
  /// Operands that are learned wherever they are constant: a bias of one element is a weight, an epsilon of one element is none.
  FixedList<int, 4> parameters = {};
  /// "ai.onnx.preview.training"; empty for the standard's default domain.
  std::string_view domain = {};
};

/// An operator that takes or gives sequences or optionals.
struct ItemImporter {
  std::string_view name;
  std::vector<Item> (*import)(const ImportNode&);
};

/// The domain under the name that the tables use: the default domain is empty.
std::string_view canonical_domain(std::string_view domain);
/// Is the operator `op_type` of `domain` supported? If, Loop, Scan and SequenceMap, which have bodies, are, too (frontend/onnx/control.h).
bool is_supported(std::string_view op_type, std::string_view domain = {});
/// Writes the node in our ops. Throws Error for whatever does not fit; only for supported operators that have no bodies.
std::vector<Item> import_node(const ImportNode& node);
/// Is operand `i` of `op_type` one that is learned (Importer::parameters)?
bool is_parameter(std::string_view op_type, int i);
/// The names of all supported operators of the default domain, sorted.
std::vector<std::string> supported_operators();
/// Those of another domain, sorted.
std::vector<std::string> supported_operators(std::string_view domain);
/// Operators of the standard's default domain, supported or not.
bool is_standard_operator(std::string_view op_type);

struct RefusedOperator {
  std::string_view name, reason;
};
/// Operators of the standard that Hone does not import on purpose, each with a sentence for the user.
std::span<const RefusedOperator> refused_operators();

// The rows, one array a file in frontend/onnx/ops.
std::span<const Importer> elementwise_importers();
std::span<const Importer> bitwise_importers();
std::span<const Importer> constant_importers();
std::span<const Importer> position_importers();
std::span<const Importer> random_importers();
std::span<const Importer> shape_importers();
std::span<const Importer> slice_importers();
std::span<const Importer> index_importers();
std::span<const Importer> sort_importers();
std::span<const Importer> reduce_importers();
std::span<const Importer> cumulative_importers();
std::span<const Importer> matmul_importers();
std::span<const Importer> einsum_importers();
std::span<const Importer> conv_importers();
std::span<const Importer> pool_importers();
std::span<const Importer> spatial_importers();
std::span<const Importer> normalization_importers();
std::span<const Importer> attention_importers();
std::span<const Importer> linear_attention_importers();
std::span<const Importer> loss_importers();
std::span<const Importer> quantize_importers();
std::span<const Importer> signal_importers();
std::span<const Importer> recurrent_importers();
std::span<const ItemImporter> sequence_importers();
std::span<const Importer> text_importers();
std::span<const Importer> contrib_importers();

}  // namespace hone::onnx
