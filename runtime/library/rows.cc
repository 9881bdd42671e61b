#include "runtime/library/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>

#include "base/call_rules.h"
#include "base/check.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/tensor.h"
#include "base/text.h"
#include "runtime/library/attention.h"
#include "runtime/library/call_text.h"
#include "runtime/library/fits.h"
#include "runtime/library/onednn.h"
#include "runtime/library/recurrent.h"
#include "runtime/library/widened.h"
#include "runtime/library/with_vector.h"

namespace hone {
namespace {

double elements_of(const TensorType& type) { return static_cast<double>(checked_element_count(type.shape)); }
double elements_of(const LibrarySpec& spec, std::size_t operand) { return elements_of(*spec.operands[operand]); }

double matmul_operations(const LibrarySpec& spec) {
  const std::vector<std::int64_t>& a = spec.operands[0]->shape;
  return 2 * elements_of(spec.results[0]) * static_cast<double>(a[a.size() - (attribute_or(spec, "ta", 0) != 0 ? 2 : 1)]);
}

/// Each element of y, or of dy, takes all weights of its channel. `weight`: [O,..].
double conv_operations(const TensorType& y, const TensorType& weight) {
  return 2 * elements_of(y) * elements_of(weight) / static_cast<double>(std::max<std::int64_t>(1, weight.shape[0]));
}

/// So many products of queries and keys, or of like size.
template <int Products>
double attention_operations(const LibrarySpec& spec) {
  return 2 * Products * elements_of(spec, 0) * static_cast<double>(spec.operands[1]->shape[2]);
}

/// So many products of all gates' weights with all steps.
template <int Products>
double recurrent_operations(const LibrarySpec& spec) {
  const RecurrentCase of = recurrent_of(spec);
  return 2 * Products * static_cast<double>(of.steps) * static_cast<double>(of.samples) * static_cast<double>(gates_of(of.cell)) * static_cast<double>(of.hidden) * static_cast<double>(of.features + of.hidden);
}

/// Each element is looked at in some windows.
double pool_operations(const LibrarySpec& spec) {
  double window = 1;
  if (const auto kernel = spec.attributes.find("kernel"); kernel != spec.attributes.end())
    for (const std::int64_t extent : kernel->second) window *= static_cast<double>(extent);
  return window * std::min(elements_of(spec, 0), elements_of(spec.results[0]));
}

// A window: ints strides, dilations (default 1) and dims pads_begin, pads_end (default 0), a number for each of the 1 to 3 spatial axes. How far the
// last window reaches follows from the tensors' extents, so pads_end is for readers only. With int channels_last activations are [N,..,C].
constinit const LibraryRow kRows[] = {
    {.name = "onednn.matmul",
     .doc = "y[..,m,n] = sum over k of a[..,m,k] * b[..,k,n]. Ints ta, tb: the operand is stored with its last two axes swapped. Each batch axis of a and b is y's, "
            "1, or missing in front",
     .rules = &fits::kMatmul,
     .fits = fits::matmul,
     .thread_sums = "over long columns of a transposed operand (ta): weights' gradients; without AVX-512 most others, too",
     .operations = matmul_operations,
     .create = onednn::create_matmul},
    {.name = "onednn.conv",
     .doc = "y[N,O,..] = x[N,C,..] correlated with w[O,C/groups,k..]. Int groups (default 1), and a window",
     .rules = &fits::kConv,
     .fits = fits::conv,
     .operations = [](const LibrarySpec& spec) { return conv_operations(spec.results[0], *spec.operands[1]); },
     .create = onednn::create_conv},
    {.name = "onednn.conv_input_grad",
     .doc = "dx from dy and w of onednn.conv with the same attributes: also the transposed convolution, whose extents are those of the result",
     .rules = &fits::kConvInputGrad,
     .fits = fits::conv_input_grad,
     .operations = [](const LibrarySpec& spec) { return conv_operations(*spec.operands[0], *spec.operands[1]); },
     .create = onednn::create_conv_input_grad},
    {.name = "onednn.conv_weight_grad",
     .doc = "dw from x and dy of onednn.conv with the same attributes",
     .rules = &fits::kConvWeightGrad,
     .fits = fits::conv_weight_grad,
     .thread_sums = "over samples: weights' gradients",
     .operations = [](const LibrarySpec& spec) { return conv_operations(*spec.operands[1], spec.results[0]); },
     .create = onednn::create_conv_weight_grad},
    {.name = "onednn.max_pool",
     .doc = "y[N,C,..] = the largest of each window of x; pads never win. Ints kernel, and a window. Result workspace, opaque and optional: where the first "
            "largest lies",
     .rules = &fits::kMaxPool,
     .fits = fits::pool,
     .opaque_result = 1,
     .operations = pool_operations,
     .create = onednn::create_max_pool},
    {.name = "onednn.max_pool_grad",
     .doc = "dx from dy and the workspace of onednn.max_pool with the same attributes",
     .rules = &fits::kMaxPoolGrad,
     .fits = fits::pool_grad,
     .opaque_operand = 1,
     .operations = [](const LibrarySpec& spec) { return elements_of(spec, 0); },
     .create = onednn::create_max_pool_grad},
    {.name = "onednn.avg_pool",
     .doc = "y[N,C,..] = the mean of each window of x: with int count_pads its sum over the kernel's size, else over the number of its elements that lie in x, "
            "and then no dilation beyond x's extent",
     .rules = &fits::kAvgPool,
     .fits = fits::pool,
     .operations = pool_operations,
     .create = onednn::create_avg_pool},
    {.name = "onednn.avg_pool_grad",
     .doc = "dx from dy of onednn.avg_pool with the same attributes",
     .rules = &fits::kAvgPoolGrad,
     .fits = fits::pool_grad,
     .operations = pool_operations,
     .create = onednn::create_avg_pool_grad},
    // Of devices' libraries. Operands are f32, bf16 or f16, all of one type, and sums f32; a product may be f32 where operands are narrower.
    {.name = "cublaslt.matmul",
     .device_library = "cuBLASLt",
     .doc = "as onednn.matmul",
     .rules = &fits::kDeviceMatmul,
     .fits = fits::matmul,
     .operations = matmul_operations,
     .create = create_widened<onednn::create_matmul>},
    {.name = "cublaslt.matmul_bias",
     .device_library = "cuBLASLt",
     .doc = "as cublaslt.matmul, plus bias[n] in each row; with int relu max(0, that). One rounding, at the end",
     .rules = &fits::kMatmulBias,
     .fits = fits::matmul_bias,
     .operations = matmul_operations,
     .create = create_matmul_with_bias},
    {.name = "cublaslt.matmul_bias_grad",
     .device_library = "cuBLASLt",
     .doc = "as cublaslt.matmul, and as second result the sum over k of operand number of (int): a's, stored [k,m], or b's, stored [k,n]",
     .rules = &fits::kMatmulBiasGrad,
     .fits = fits::matmul_bias_grad,
     .operations = matmul_operations,
     .create = create_matmul_with_bias_gradient},
    {.name = "cudnn.conv",
     .device_library = "cuDNN",
     .doc = "as onednn.conv",
     .rules = &fits::kDeviceConv,
     .fits = fits::conv,
     .operations = [](const LibrarySpec& spec) { return conv_operations(spec.results[0], *spec.operands[1]); },
     .create = create_widened<onednn::create_conv>},
    {.name = "cudnn.conv_input_grad",
     .device_library = "cuDNN",
     .doc = "as onednn.conv_input_grad",
     .rules = &fits::kDeviceConvInputGrad,
     .fits = fits::conv_input_grad,
     .operations = [](const LibrarySpec& spec) { return conv_operations(*spec.operands[0], *spec.operands[1]); },
     .create = create_widened<onednn::create_conv_input_grad>},
    {.name = "cudnn.conv_weight_grad",
     .device_library = "cuDNN",
     .doc = "as onednn.conv_weight_grad",
     .rules = &fits::kDeviceConvWeightGrad,
     .fits = fits::conv_weight_grad,
     .operations = [](const LibrarySpec& spec) { return conv_operations(*spec.operands[1], spec.results[0]); },
     .create = create_widened<onednn::create_conv_weight_grad>},
    // Heads of queries [N,H,S,D], keys [N,H,T,D] and values [N,H,T,E], all bf16 or all f16. Int scale_bits: the bits of an f32. Int causal: a query sees the keys up to its own position.
    {.name = "cudnn.attention",
     .device_library = "cuDNN",
     .doc = "y = weights * value, weights = softmax(scale * query * key^T + bias) over keys, and statistics[N,H,S,1] in f32: the logarithm of the sum of the exponentials. The bias, in f32, broadcasts to the scores",
     .rules = &fits::kAttention,
     .fits = fits::attention,
     .operations = attention_operations<2>,
     .create = create_attention},
    {.name = "cudnn.attention_grad",
     .device_library = "cuDNN",
     .doc = "dquery, dkey and dvalue from query, key, value, y, dy, the statistics of cudnn.attention with the same attributes, and its bias",
     .rules = &fits::kAttentionGrad,
     .fits = fits::attention_grad,
     .operations = attention_operations<5>,
     .least_scratch = [](const LibrarySpec& spec) { return gradient_scratch(one_head(attention_of(spec))); },
     .create = create_attention_gradient},
    // Recurrent layers in one direction, in f32: x [T,N,I], w [G*H,I], r [G*H,H], bias and state_bias [G*H], states h, and c of an LSTM, [N,H]. Int cell: a RecurrentCell (base/recurrent_cell.h), of G gates, of which the
    // i-th lies at place gates[i] (G ints) of the weights' G. Int tf32: factors may be TF32.
    {.name = "cudnn.recurrent",
     .device_library = "cuDNN",
     .doc = "y [T,N,H], the hidden states after each step, and the last h, and c, from x, the weights, and the states before the first step",
     .rules = &fits::kRecurrent,
     .fits = fits::recurrent,
     .operations = recurrent_operations<1>,
     .least_scratch = [](const LibrarySpec& spec) { return recurrent_scratch(recurrent_of(spec), most_needs(recurrent_of(spec))); },
     .create = create_recurrent},
    {.name = "cudnn.recurrent_grad",
     .device_library = "cuDNN",
     .doc = "the gradients of cudnn.recurrent's operands, from x, the weights, dy, the states before the first step, and the gradients of the last ones, with the same attributes. The call goes through all steps again first",
     .rules = &fits::kRecurrentGrad,
     .fits = fits::recurrent_grad,
     .operations = recurrent_operations<3>,
     .least_scratch = [](const LibrarySpec& spec) { return recurrent_gradient_scratch(recurrent_of(spec), most_needs(recurrent_of(spec))); },
     .create = create_recurrent_gradient},
};

std::string text_of(const TensorType& type) { return fmt::format("{}{}", to_string(type.dtype), shape_text(type.shape)); }

CallTypes types_of(const LibrarySpec& spec) {
  CallTypes types;
  for (const auto& operand : spec.operands) types.operands.push_back(operand ? std::optional(CallTypes::Tensor{operand->dtype, operand->shape.size()}) : std::nullopt);
  for (const TensorType& result : spec.results) types.results.push_back(CallTypes::Tensor{result.dtype, result.shape.size()});
  for (const auto& [name, numbers] : spec.attributes) types.attributes[name] = {numbers.begin(), numbers.end()};
  return types;
}

bool is_empty(const TensorType& type) { return std::find(type.shape.begin(), type.shape.end(), 0) != type.shape.end(); }

/// A call with an empty tensor: each sum is over nothing, so results are zero, or the bias of a matmul.
class EmptyCall : public LibraryCall {
 public:
  EmptyCall(const LibrarySpec& spec, int opaque_result) {
    for (const TensorType& result : spec.results)
      description_.result_bytes.push_back(static_cast<std::size_t>(checked_element_count(result.shape)) * size_of(result.dtype));
    if (opaque_result >= 0 and static_cast<std::size_t>(opaque_result) < spec.results.size())
      description_.result_bytes[static_cast<std::size_t>(opaque_result)] = 0;
    if (spec.operands.size() < 3 or not spec.operands[2] or spec.results.size() > 1 or is_empty(spec.results[0])) return;
    y_ = spec.results[0];
    bias_ = *spec.operands[2];
    HONE_CHECK(bias_.dtype == y_.dtype and bias_.shape.size() <= y_.shape.size(), "a bias that cannot be broadcast to the result");
    bias_.shape.insert(bias_.shape.begin(), y_.shape.size() - bias_.shape.size(), 1);
    has_bias_ = true;
  }

  void execute(std::span<const void* const> operands, std::span<void* const> results, void*) override {
    for (std::size_t i = 0; i < results.size(); ++i)
      if (description_.result_bytes[i] > 0) std::memset(results[i], 0, description_.result_bytes[i]);
    if (has_bias_) broadcast(static_cast<const std::byte*>(operands[2]), static_cast<std::byte*>(results[0]));
  }

 private:
  void broadcast(const std::byte* bias, std::byte* y) const {
    const std::size_t size = size_of(y_.dtype);
    const std::int64_t count = checked_element_count(y_.shape);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t rest = i, from = 0, stride = 1;
      for (std::size_t axis = y_.shape.size(); axis-- > 0; rest /= y_.shape[axis]) {
        if (bias_.shape[axis] > 1) from += rest % y_.shape[axis] * stride;
        stride *= bias_.shape[axis];
      }
      std::memcpy(y + static_cast<std::size_t>(i) * size, bias + static_cast<std::size_t>(from) * size, size);
    }
  }

  bool has_bias_ = false;
  TensorType y_, bias_;
};

}  // namespace

std::string text_of(const LibraryRow& row, const LibrarySpec& spec) {
  std::vector<std::string> operands, results;
  for (const auto& operand : spec.operands) operands.push_back(operand ? text_of(*operand) : "-");
  for (const TensorType& result : spec.results) results.push_back(text_of(result));
  std::string text = fmt::format("{}({}) -> {}", row.name, join(operands, ", "), join(results, ", "));
  for (const auto& [name, values] : spec.attributes) text += fmt::format(" {}={}", name, shape_text(values));
  return text;
}

std::vector<std::int64_t> attribute_or(const LibrarySpec& spec, std::string_view name, std::vector<std::int64_t> values) {
  const auto found = spec.attributes.find(name);
  if (found == spec.attributes.end()) return values;
  HONE_CHECK(found->second.size() == values.size(), fmt::format("attribute {} has {} numbers, not {}", name, found->second.size(), values.size()));
  return found->second;
}

std::int64_t attribute_or(const LibrarySpec& spec, std::string_view name, std::int64_t value) { return attribute_or(spec, name, std::vector{value}).front(); }

/// The shape of an opaque tensor means nothing.
bool has_empty_tensor(const LibraryRow& row, const LibrarySpec& spec) {
  for (std::size_t i = 0; i < spec.operands.size(); ++i)
    if (static_cast<int>(i) != row.opaque_operand and spec.operands[i] and is_empty(*spec.operands[i])) return true;
  for (std::size_t i = 0; i < spec.results.size(); ++i)
    if (static_cast<int>(i) != row.opaque_result and is_empty(spec.results[i])) return true;
  return false;
}

/// What the libraries ask for grows with what they work on: partial sums of a result that is cut along k, operands in another layout. Beyond 64 MiB they gain little.
std::size_t device_scratch(const LibrarySpec& spec) {
  constexpr std::size_t kTimes = 4, kLeast = std::size_t{1} << 20, kMost = std::size_t{64} << 20;
  std::size_t bytes = 0;
  const auto add = [&](const TensorType& type) { bytes = std::min(kMost, checked_add(bytes, checked_multiply(static_cast<std::size_t>(checked_element_count(type.shape)), size_of(type.dtype), "a tensor"), "tensors")); };
  for (const auto& operand : spec.operands)
    if (operand) add(*operand);
  for (const TensorType& result : spec.results) add(result);
  return std::clamp(kTimes * bytes, kLeast, kMost);
}

std::size_t device_scratch(const LibraryRow& row, const LibrarySpec& spec) { return std::max(device_scratch(spec), row.least_scratch == nullptr ? 0 : row.least_scratch(spec)); }

std::string LibraryRow::why_not(const LibrarySpec& spec) const {
  std::string why = hone::why_not(*rules, types_of(spec));
  return why.empty() ? fits(spec) : why;
}

std::unique_ptr<LibraryCall> LibraryRow::make(const LibrarySpec& spec) const {
  try {
    const std::string why = why_not(spec);
    HONE_CHECK(why.empty(), why);
    if (has_empty_tensor(*this, spec)) return std::make_unique<EmptyCall>(spec, opaque_result);
    return create(spec);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw Error(Code::kMemory, fmt::format("oneDNN has no memory left for {}", text_of(*this, spec)));
    throw Error(Code::kPlanMismatch, fmt::format("oneDNN refuses {}: {}", text_of(*this, spec), error.what()), {},
                {"the plan was made for another version of Hone, or is damaged: compile the model again", "if that gives such a plan once more, please report it"});
  } catch (const InternalError& error) { throw InternalError(fmt::format("{}\n  in {}", error.what(), text_of(*this, spec))); }
}

std::span<const LibraryRow> library_rows() { return kRows; }

const LibraryRow* find_library_row(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kRows), std::end(kRows), [name](const LibraryRow& row) { return row.name == name; });
  return found == std::end(kRows) ? nullptr : found;
}

}  // namespace hone
