#include "runtime/library/with_vector.h"

#include <cmath>
#include <vector>

#include "base/check.h"
#include "runtime/library/elements.h"
#include "runtime/library/onednn.h"
#include "runtime/library/widened.h"

namespace hone {

namespace {

/// The product alone, its result in f32.
LibrarySpec product_in_f32(const LibrarySpec& spec) {
  LibrarySpec product = spec;
  product.attributes.erase("relu");
  product.operands.resize(2);
  product.results[0].dtype = DType::kF32;
  return product;
}

class MatmulWithBias final : public LibraryCall {
 public:
  explicit MatmulWithBias(const LibrarySpec& spec)
      : product_(widened(onednn::create_matmul, product_in_f32(spec))), result_(spec.results[0]), bias_(*spec.operands[2]), relu_(attribute_or(spec, "relu", 0) != 0), sums_(element_count_of(result_)) {
    HONE_CHECK(static_cast<std::int64_t>(element_count_of(bias_)) == result_.shape.back(), "a bias that is not of the product's columns");
    description_.scratch_bytes = product_->description().scratch_bytes;
    description_.result_bytes = {element_count_of(result_) * size_of(result_.dtype)};
  }

  void execute(std::span<const void* const> operands, std::span<void* const> results, void* scratch) override {
    void* const sums[] = {sums_.data()};
    product_->execute(operands.first(2), sums, scratch);
    const std::size_t columns = element_count_of(bias_);
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const float sum = sums_[i] + static_cast<float>(read_element(bias_.dtype, operands[2], i % columns));
      write_element(result_.dtype, results[0], i, static_cast<double>(relu_ and sum <= 0 ? 0.0F : sum));
    }
  }

 private:
  const std::unique_ptr<LibraryCall> product_;
  const TensorType result_, bias_;
  const bool relu_;
  std::vector<float> sums_;
};

class MatmulWithBiasGradient final : public LibraryCall {
 public:
  explicit MatmulWithBiasGradient(const LibrarySpec& spec)
      : of_(attribute_or(spec, "of", 0) != 0 ? 1 : 0), summed_(*spec.operands[of_]), vector_(spec.results[1]) {
    LibrarySpec product = spec;
    product.attributes.erase("of");
    product.results.resize(1);
    product_ = widened(onednn::create_matmul, product);
    HONE_CHECK(summed_.shape.size() == 2 and attribute_or(spec, of_ == 0 ? "ta" : "tb", 0) == (of_ == 0 ? 1 : 0), "columns of an operand that is stored another way");
    HONE_CHECK(static_cast<std::int64_t>(element_count_of(vector_)) == summed_.shape[1], "a bias that is not of the operand's columns");
    description_ = product_->description();
    description_.result_bytes.push_back(element_count_of(vector_) * size_of(vector_.dtype));
  }

  void execute(std::span<const void* const> operands, std::span<void* const> results, void* scratch) override {
    product_->execute(operands, results.first(1), scratch);
    const auto rows = static_cast<std::size_t>(summed_.shape[0]), columns = static_cast<std::size_t>(summed_.shape[1]);
    std::vector<double> sums(columns);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t column = 0; column < columns; ++column) sums[column] += read_element(summed_.dtype, operands[of_], row * columns + column);
    for (std::size_t column = 0; column < columns; ++column) write_element(vector_.dtype, results[1], column, sums[column]);
  }

 private:
  const std::size_t of_;
  const TensorType summed_, vector_;
  std::unique_ptr<LibraryCall> product_;
};

}  // namespace

std::unique_ptr<LibraryCall> create_matmul_with_bias(const LibrarySpec& spec) { return std::make_unique<MatmulWithBias>(spec); }
std::unique_ptr<LibraryCall> create_matmul_with_bias_gradient(const LibrarySpec& spec) { return std::make_unique<MatmulWithBiasGradient>(spec); }

}  // namespace hone
