// Typed attributes of nodes. A key is a constexpr object with a type: `node.attrs[kPerm]` is a std::vector<int64_t>.
// An attribute that is absent has its type's empty value (false, 0, "", {}); text prints only what differs from that.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dims.h"
#include "base/dtype.h"
#include "base/fixed_list.h"
#include "base/tensor.h"

namespace hone {

using Ints = std::vector<std::int64_t>;
using AttrValue = std::variant<bool, std::int64_t, double, std::string, DType, Ints, Shape>;

/// Index into AttrValue's alternatives, for the parser and the verifier.
enum class AttrKind : std::uint8_t { kBool, kInt, kFloat, kString, kDType, kInts, kShape };

struct AttrSpec {
  std::string_view name;
  AttrKind kind;
};

struct Attr {
  const AttrSpec* spec;
  AttrValue value;
};

template <typename T>
struct AttrKey : AttrSpec {
  consteval explicit AttrKey(std::string_view key_name) : AttrSpec{key_name, static_cast<AttrKind>(AttrValue(std::in_place_type<T>).index())} {}
  /// An attribute for a builder: `transpose(x, {kPerm = perm})`.
  Attr operator=(T value) const { return {this, AttrValue(std::in_place_type<T>, std::move(value))}; }  // NOLINT: reads as an assignment
};

/// The attributes of one node, by key.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<Attr> attrs) {
    for (const Attr& attr : attrs) set(attr);
  }

  template <typename T>
  const T& operator[](const AttrKey<T>& key) const {
    static const T kEmpty{};
    const auto found = values_.find(key.name);
    return found == values_.end() ? kEmpty : std::get<T>(found->second.value);
  }
  bool has(const AttrSpec& key) const { return values_.contains(key.name); }
  void set(Attr attr) { values_.insert_or_assign(attr.spec->name, std::move(attr)); }
  void erase(const AttrSpec& key) { values_.erase(key.name); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  bool empty() const { return values_.empty(); }
  friend bool operator==(const Attrs& a, const Attrs& b) { return a.text() == b.text(); }

  /// "{axis=1, perm=[0,2,1]}", keys sorted; "" when empty.
  std::string text() const;

 private:
  std::map<std::string_view, Attr> values_;
};

std::string to_string(const AttrValue& value);
/// The whole-numbered attributes as lists of sizes: what host functions and library rows are given.
std::map<std::string, std::vector<Dim>> attribute_lists(const Attrs& attrs);

/// The attributes an op may carry.
struct AttrRef {
  constexpr AttrRef() = default;
  template <typename T>
  constexpr AttrRef(const AttrKey<T>& key) : spec(&key) {}  // NOLINT: a key names itself
  const AttrSpec* spec = nullptr;
};

// The keys of the op table, one list. Axes are never negative inside the graph: import resolves them.
inline constexpr AttrKey<std::int64_t> kAxis("axis");
inline constexpr AttrKey<Ints> kAxes("axes");              ///< reduced, inserted or flipped axes, sorted
inline constexpr AttrKey<bool> kKeepDims("keep_dims");
inline constexpr AttrKey<Ints> kPerm("perm");              ///< result axis i is operand axis perm[i]
inline constexpr AttrKey<Shape> kShape("shape");           ///< result shape
inline constexpr AttrKey<Shape> kStarts("starts");
inline constexpr AttrKey<Ints> kSteps("steps");
inline constexpr AttrKey<DType> kTo("to");
inline constexpr AttrKey<bool> kSaturate("saturate");
inline constexpr AttrKey<bool> kTransA("ta");
inline constexpr AttrKey<bool> kTransB("tb");
inline constexpr AttrKey<Ints> kStrides("strides");        ///< one per spatial axis
inline constexpr AttrKey<Ints> kDilations("dilations");
inline constexpr AttrKey<Shape> kPadsBegin("pads_begin");  ///< one per spatial axis; Dims, as auto_pad depends on sizes
inline constexpr AttrKey<Shape> kPadsEnd("pads_end");
inline constexpr AttrKey<Ints> kKernel("kernel");          ///< window extents
inline constexpr AttrKey<std::int64_t> kGroups("groups");
inline constexpr AttrKey<std::int64_t> kParts("parts");         ///< of a sum, over the samples
inline constexpr AttrKey<Shape> kSpatial("spatial");       ///< spatial extents of the result
inline constexpr AttrKey<bool> kCountPads("count_pads");   ///< average pooling divides by the whole window
inline constexpr AttrKey<Shape> kSizes("sizes");           ///< extents of the result, spelled out
inline constexpr AttrKey<std::string> kCoordinates("coordinates");  ///< how positions in a resized axis map to the original one (ONNX's names)
inline constexpr AttrKey<std::string> kRounding("rounding");  ///< to which number: the nearest, up, down, or one of ONNX's ways to an element
inline constexpr AttrKey<double> kCubicA("cubic_a");       ///< the free coefficient of cubic interpolation
inline constexpr AttrKey<bool> kExcludeOutside("exclude_outside");
inline constexpr AttrKey<bool> kAntialias("antialias");
inline constexpr AttrKey<std::string> kPadding("padding"); ///< what lies outside: "zeros", "border" or "reflection"
inline constexpr AttrKey<bool> kAlignCorners("align_corners");
inline constexpr AttrKey<bool> kHalfPixel("half_pixel");
inline constexpr AttrKey<bool> kAdaptive("adaptive");      ///< as many samples as the region is large
inline constexpr AttrKey<bool> kColumnMajor("column_major");
inline constexpr AttrKey<std::int64_t> kOffsetGroups("offset_groups");
inline constexpr AttrKey<double> kEpsilon("epsilon");
inline constexpr AttrKey<double> kScale("scale");
inline constexpr AttrKey<bool> kCausal("causal");         ///< a query attends to the keys up to its own position
inline constexpr AttrKey<double> kSoftcap("softcap");      ///< scores become softcap * tanh(score / softcap); 0: they do not
inline constexpr AttrKey<DType> kSoftmaxType("softmax_type");  ///< what the softmax is computed in; absent: the operands' type
inline constexpr AttrKey<double> kMomentum("momentum");
inline constexpr AttrKey<double> kBeta1("beta1");
inline constexpr AttrKey<double> kBeta2("beta2");
inline constexpr AttrKey<double> kRho("rho");
inline constexpr AttrKey<double> kDampening("dampening");
inline constexpr AttrKey<double> kWeightDecay("weight_decay");
inline constexpr AttrKey<double> kLrDecay("lr_decay");
inline constexpr AttrKey<double> kMomentumDecay("momentum_decay");
inline constexpr AttrKey<double> kBeta2Decay("beta2_decay");
inline constexpr AttrKey<double> kEpsilon2("epsilon2");
inline constexpr AttrKey<double> kClipThreshold("clip_threshold");
inline constexpr AttrKey<bool> kNesterov("nesterov");
inline constexpr AttrKey<bool> kCentered("centered");
inline constexpr AttrKey<bool> kAmsgrad("amsgrad");
inline constexpr AttrKey<bool> kKeras("keras");            ///< Keras's formula instead of PyTorch's
inline constexpr AttrKey<bool> kOutputsLast("outputs_last");  ///< a matrix whose columns are a layer's outputs, not its rows as in PyTorch
inline constexpr AttrKey<double> kDelta("delta");
inline constexpr AttrKey<double> kLabelSmoothing("label_smoothing");
inline constexpr AttrKey<std::int64_t> kIgnoreIndex("ignore_index");
inline constexpr AttrKey<bool> kHasIgnoreIndex("has_ignore_index");
inline constexpr AttrKey<std::int64_t> kTopK("k");
inline constexpr AttrKey<bool> kSmallest("smallest");      ///< the smallest first
inline constexpr AttrKey<std::string> kReduction("reduction");     ///< how updates meet what is there: "" (replace), "add", "mul", "max", "min"
inline constexpr AttrKey<std::int64_t> kBatchDims("batch_dims");   ///< so many leading axes are shared
inline constexpr AttrKey<std::int64_t> kBatchAxis("batch_axis");
inline constexpr AttrKey<std::string> kMode("mode");
inline constexpr AttrKey<bool> kSorted("sorted");
inline constexpr AttrKey<bool> kCenterBox("center_box");           ///< boxes are given by center and size instead of two corners
inline constexpr AttrKey<bool> kTanhForm("tanh_form");     ///< gelu by tanh instead of erf
inline constexpr AttrKey<std::int64_t> kSeed("seed");      ///< of a node's random numbers
inline constexpr AttrKey<std::int64_t> kStream("stream");  ///< number of a node among those that draw random numbers
inline constexpr AttrKey<std::int64_t> kBucket("bucket");  ///< all_reduce nodes of one bucket travel together
inline constexpr AttrKey<Shape> kTrips("trips");           ///< number of iterations, one size
inline constexpr AttrKey<bool> kReverse("reverse");        ///< from the last slice or element to the first
inline constexpr AttrKey<std::int64_t> kStates("states");  ///< how many operands are loop states
inline constexpr AttrKey<std::int64_t> kScanned("scanned");  ///< how many operands are read slice by slice
inline constexpr AttrKey<std::int64_t> kCell("cell");      ///< which RecurrentCell
inline constexpr AttrKey<Ints> kGates("gates");            ///< the place of each of the cell's gates among the rows of its weights
inline constexpr AttrKey<std::int64_t> kScaleBits("scale_bits");  ///< kScale as the bits of an f32: rows are given whole numbers
inline constexpr AttrKey<std::string> kRow("row");         ///< the library row that a target chose for the node

}  // namespace hone
