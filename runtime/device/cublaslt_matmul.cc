#include "runtime/device/cublaslt_matmul.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"
#include "base/diag.h"

namespace hone::cublaslt {

namespace {

int type_of(DType dtype) {
  HONE_CHECK(dtype == DType::kF32 or dtype == DType::kF16 or dtype == DType::kBF16, fmt::format("cuBLASLt is asked to multiply {}", to_string(dtype)));
  return dtype == DType::kF32 ? kF32 : dtype == DType::kF16 ? kF16 : kBF16;
}

/// Leading axes next to each other in which each operand goes along with y, or stays the same.
struct Axes {
  std::int64_t extent = 1;
  bool in_a = true, in_b = true;
};

/// From the innermost to the outermost.
std::vector<Axes> leading_axes(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b, const std::vector<std::int64_t>& y) {
  std::vector<Axes> groups;
  for (std::size_t i = 3; i <= y.size(); ++i) {  // from the last axis
    const std::int64_t extent = y[y.size() - i];
    if (extent == 1) continue;
    const auto has = [&](const std::vector<std::int64_t>& shape) { return i <= shape.size() and shape[shape.size() - i] != 1; };
    const Axes axes{extent, has(a), has(b)};
    HONE_CHECK((not axes.in_a or a[a.size() - i] == extent) and (not axes.in_b or b[b.size() - i] == extent), "leading axes of a product that do not fit");
    if (not groups.empty() and groups.back().in_a == axes.in_a and groups.back().in_b == axes.in_b) groups.back().extent = checked_multiply(groups.back().extent, extent, "a product's batch");
    else groups.push_back(axes);
  }
  return groups;
}

/// Of every matrix of every call.
std::uint32_t alignment_of(const Product& product) {
  std::size_t bytes = kLibraryAlignment;
  const auto keep = [&](std::int64_t elements, DType dtype) {
    while (static_cast<std::size_t>(elements) * size_of(dtype) % bytes != 0) bytes /= 2;
  };
  for (const Product::Offsets& at : product.calls) keep(at.a, product.operands), keep(at.b, product.operands), keep(at.y, product.result);
  return static_cast<std::uint32_t>(bytes);
}

/// What the library recommends; none if it refuses.
std::vector<Heuristic> algorithms_for(const Library& library, Handle handle, const Product& product, const Descriptors& descriptors, std::size_t most_scratch, int most) {
  Preference preference = nullptr;
  if (library.preference_create(&preference) != 0) return {};
  const auto set = [&](int attribute, auto value) { return library.preference_set(preference, attribute, &value, sizeof(value)) == 0; };
  bool is_set = set(kMaxWorkspace, static_cast<std::uint64_t>(most_scratch)) and set(kReductionSchemes, kReductionInComputeType);  // partial sums of a long sum are f32
  for (const int attribute : {kAlignmentA, kAlignmentB, kAlignmentC, kAlignmentD}) is_set = is_set and set(attribute, alignment_of(product));
  std::vector<Heuristic> found(static_cast<std::size_t>(most));
  int count = 0;
  const Status status = is_set ? library.heuristic(handle, descriptors.matmul, descriptors.first, descriptors.second, descriptors.result, descriptors.result, preference, most, found.data(), &count) : -1;
  (void)library.preference_destroy(preference);
  found.resize(status == 0 ? static_cast<std::size_t>(std::clamp(count, 0, most)) : 0);
  std::erase_if(found, [most_scratch](const Heuristic& each) { return each.status != 0 or each.workspace > most_scratch; });
  return found;
}

bool is_gradient(Product::Epilogue epilogue) { return epilogue == Product::Epilogue::kBiasGradOfA or epilogue == Product::Epilogue::kBiasGradOfB; }

/// An algorithm's own words for itself.
std::string name_of(const Algorithm& algorithm) {
  std::string name = "algorithm";
  for (const std::uint64_t word : algorithm.data) name += fmt::format(" {:x}", word);
  return name;
}

class MatmulCall final : public DeviceCall {
 public:
  MatmulCall(const Library& library, Handle handle, const Product& product, std::shared_ptr<const Descriptors> descriptors, const Heuristic& chosen, cuda::UseStream use)
      : library_(library), handle_(handle), product_(product), descriptors_(std::move(descriptors)), chosen_(chosen), use_(std::move(use)) {}

  std::size_t scratch_bytes() const override { return chosen_.workspace; }

  void put(Stream stream, std::span<const std::byte* const> operands, std::span<std::byte* const> results, std::byte* scratch) override {
    constexpr float kOne = 1, kZero = 0;
    const cuda::StreamHandle handle = use_(stream);
    if (product_.epilogue != Product::Epilogue::kNone) descriptors_->set_vector(is_gradient(product_.epilogue) ? results[1] : operands[2]);
    const auto width = static_cast<std::int64_t>(size_of(product_.operands)), result_width = static_cast<std::int64_t>(size_of(product_.result));
    for (const Product::Offsets& at : product_.calls) {
      const std::byte *a = operands[0] + at.a * width, *b = operands[1] + at.b * width;
      std::byte* y = results[0] + at.y * result_width;
      const Status status = library_.matmul(handle_, descriptors_->matmul, &kOne, b, descriptors_->first, a, descriptors_->second, &kZero, y, descriptors_->result, y, descriptors_->result, &chosen_.algorithm,
                                            scratch, chosen_.workspace, handle);
      if (status != 0) throw Error(Code::kDeviceLost, fmt::format("cublasLtMatmul says {}", library_.text(status)), {}, {"what was computed on the device is lost; the last checkpoint is not: go on with --resume"});
    }
  }

 private:
  const Library& library_;
  const Handle handle_;
  const Product product_;
  const std::shared_ptr<const Descriptors> descriptors_;  ///< of all algorithms
  const Heuristic chosen_;
  const cuda::UseStream use_;
};

}  // namespace

Product product_of(const LibrarySpec& spec) {
  const std::vector<std::int64_t>&a = spec.operands[0]->shape, &b = spec.operands[1]->shape, &y = spec.results[0].shape;
  HONE_CHECK(a.size() >= 2 and b.size() >= 2 and y.size() >= 2, "a matrix product of vectors");
  Product product{.operands = spec.operands[0]->dtype, .result = spec.results[0].dtype, .m = y[y.size() - 2], .n = y.back()};
  product.tf32 = product.operands == DType::kF32 and attribute_or(spec, "tf32", 0) != 0;
  product.ta = attribute_or(spec, "ta", 0) != 0;
  product.tb = attribute_or(spec, "tb", 0) != 0;
  product.k = a[a.size() - (product.ta ? 2 : 1)];
  using Epilogue = Product::Epilogue;
  if (spec.operands.size() > 2) product.epilogue = attribute_or(spec, "relu", 0) != 0 ? Epilogue::kReluBias : Epilogue::kBias, product.vector = spec.operands[2]->dtype;
  if (spec.results.size() > 1) product.epilogue = attribute_or(spec, "of", 0) != 0 ? Epilogue::kBiasGradOfB : Epilogue::kBiasGradOfA, product.vector = spec.results[1].dtype;
  HONE_CHECK(b[b.size() - (product.tb ? 1 : 2)] == product.k, "a product over sums of different lengths");
  std::vector<Axes> groups = leading_axes(a, b, y);
  if (not groups.empty() and groups.front().in_a and not groups.front().in_b and not product.ta) {
    product.m = checked_multiply(product.m, groups.front().extent, "rows of a product");
    groups.erase(groups.begin());
  }
  std::int64_t in_a = product.m * product.k, in_b = product.k * product.n, in_y = product.m * product.n;  // elements inside of the axes so far
  bool is_first = true;
  for (const Axes& axes : groups) {
    const std::int64_t step_a = axes.in_a ? in_a : 0, step_b = axes.in_b ? in_b : 0;
    if (is_first) {
      product.batch = axes.extent, product.stride_a = step_a, product.stride_b = step_b, product.stride_y = in_y;
    } else {
      std::vector<Product::Offsets> calls;
      for (std::int64_t i = 0; i < axes.extent; ++i)
        for (const Product::Offsets& inner : product.calls) calls.push_back({inner.a + i * step_a, inner.b + i * step_b, inner.y + i * in_y});
      product.calls = std::move(calls);
    }
    is_first = false;
    if (axes.in_a) in_a *= axes.extent;
    if (axes.in_b) in_b *= axes.extent;
    in_y *= axes.extent;
  }
  return product;
}

Descriptors::Descriptors(const Library& library, const Product& product) : library_(library) {
  check(library_.desc_create(&matmul, product.tf32 ? kComputeTf32 : kComputeF32, kF32), "cublasLtMatmulDescCreate");
  const auto transpose = [&](int attribute, bool is_transposed) {
    if (is_transposed) check(library_.desc_set(matmul, attribute, &kTransposed, sizeof(kTransposed)), "cublasLtMatmulDescSetAttribute");
  };
  transpose(kDescTransA, product.tb);
  transpose(kDescTransB, product.ta);
  if (product.epilogue != Product::Epilogue::kNone) {
    constexpr std::uint32_t kEpilogues[] = {0, kEpilogueBias, kEpilogueReluBias, kEpilogueBiasGradB, kEpilogueBiasGradA};  // b is the library's A
    const std::uint32_t epilogue = kEpilogues[static_cast<std::size_t>(product.epilogue)];
    const int type = type_of(product.vector);
    check(library_.desc_set(matmul, kDescEpilogue, &epilogue, sizeof(epilogue)), "cublasLtMatmulDescSetAttribute");
    check(library_.desc_set(matmul, kDescBiasType, &type, sizeof(type)), "cublasLtMatmulDescSetAttribute");
    set_vector(reinterpret_cast<const std::byte*>(kLibraryAlignment));  // algorithms are chosen for an address like those to come
  }
  // What lies as rows of so many elements is columns of so many to the library.
  first = product.tb ? layout(product.operands, product.k, product.n, product.batch, product.stride_b) : layout(product.operands, product.n, product.k, product.batch, product.stride_b);
  second = product.ta ? layout(product.operands, product.m, product.k, product.batch, product.stride_a) : layout(product.operands, product.k, product.m, product.batch, product.stride_a);
  result = layout(product.result, product.n, product.m, product.batch, product.stride_y);
}

Descriptors::~Descriptors() {
  for (const Layout each : {first, second, result})
    if (each != nullptr) (void)library_.layout_destroy(each);
  if (matmul != nullptr) (void)library_.desc_destroy(matmul);
}

Layout Descriptors::layout(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t batch, std::int64_t stride) {
  Layout made = nullptr;
  check(library_.layout_create(&made, type_of(dtype), static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), rows), "cublasLtMatrixLayoutCreate");
  const auto count = checked_cast<std::int32_t>(batch, "a product's batch");
  check(library_.layout_set(made, kLayoutBatchCount, &count, sizeof(count)), "cublasLtMatrixLayoutSetAttribute");
  check(library_.layout_set(made, kLayoutBatchStride, &stride, sizeof(stride)), "cublasLtMatrixLayoutSetAttribute");
  return made;
}

void Descriptors::set_vector(const std::byte* vector) const { check(library_.desc_set(matmul, kDescBiasPointer, &vector, sizeof(vector)), "cublasLtMatmulDescSetAttribute"); }

void Descriptors::check(Status status, const char* call) const { HONE_CHECK(status == 0, fmt::format("{} says {}", call, library_.text(status))); }

std::vector<Candidate> make_matmuls(const Library& library, Handle handle, const LibrarySpec& spec, const cuda::UseStream& use, int most) {
  const Product product = product_of(spec);
  const bool has_epilogue = product.epilogue != Product::Epilogue::kNone;
  if (has_epilogue and (product.batch > 1 or product.calls.size() > 1)) return {};
  const auto keeps_nans_of = product.epilogue == Product::Epilogue::kReluBias ? std::optional<std::size_t>(2) : std::nullopt;  // its relu may be a max that prefers numbers
  const auto descriptors = std::make_shared<const Descriptors>(library, product);
  std::vector<Candidate> candidates;
  for (const Heuristic& algorithm : algorithms_for(library, handle, product, *descriptors, device_scratch(spec), most))
    candidates.push_back({name_of(algorithm.algorithm), std::make_unique<MatmulCall>(library, handle, product, descriptors, algorithm, use), keeps_nans_of});
  return candidates;
}

}  // namespace hone::cublaslt
