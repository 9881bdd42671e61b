// The row cublaslt.matmul: what a matrix product is to cuBLASLt, and its call. All but the choice of an algorithm and the call itself goes without a GPU.
#pragma once

#include <memory>
#include <vector>

#include "runtime/device/choices.h"
#include "runtime/device/cublaslt.h"
#include "runtime/device/cuda_stream.h"

namespace hone::cublaslt {

/// y[m,n] = sum over k of a * b, for each of `batch` matrices that lie `stride` elements apart (0: the same one), and all of that once for each of `calls`.
struct Product {
  DType operands = DType::kF32, result = DType::kF32;
  bool tf32 = false;  ///< f32 factors as TF32
  std::int64_t m = 1, n = 1, k = 1;
  bool ta = false, tb = false;  ///< stored [k,m], [n,k]
  std::int64_t batch = 1, stride_a = 0, stride_b = 0, stride_y = 0;
  struct Offsets {
    std::int64_t a = 0, b = 0, y = 0;  ///< in elements
    friend bool operator==(const Offsets&, const Offsets&) = default;
  };
  std::vector<Offsets> calls = {{}};
  /// What the library does besides, with a vector: of n elements, but for kBiasGradOfA, where it has m.
  enum class Epilogue : std::uint8_t {
    kNone,
    kBias,         ///< adds it to each row of y
    kReluBias,     ///< and then takes max(0, y)
    kBiasGradOfA,  ///< makes it the sum of a over k
    kBiasGradOfB,  ///< of b
  };
  Epilogue epilogue = Epilogue::kNone;
  DType vector = DType::kF32;
};

/// Of a spec of cublaslt.matmul, cublaslt.matmul_bias or cublaslt.matmul_bias_grad. Leading axes that belong together become one: rows of all batches are rows of one matrix where b is the same for all; else the innermost ones are a batch with a stride, and what is left are calls.
Product product_of(const LibrarySpec& spec);

/// What the library is told of a product. It counts by columns, so it is told of y^T = b^T a^T.
class Descriptors {
 public:
  /// Throws InternalError if the library refuses: the row should not have been chosen.
  Descriptors(const Library& library, const Product& product);
  ~Descriptors();
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  /// Where the epilogue's vector lies, for the calls to come.
  void set_vector(const std::byte* vector) const;

  MatmulDesc matmul = nullptr;
  Layout first = nullptr, second = nullptr, result = nullptr;  ///< b, a and y

 private:
  Layout layout(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t batch, std::int64_t stride);
  void check(Status status, const char* call) const;

  const Library& library_;
};

/// The library's algorithms for it that take no more scratch than device_scratch(), the best recommended first; at most so many, and none if it has none, or if a product with an epilogue is more than one matrix. Library, handle and what `use` needs outlive them.
std::vector<Candidate> make_matmuls(const Library& library, Handle handle, const LibrarySpec& spec, const cuda::UseStream& use, int most);

}  // namespace hone::cublaslt
