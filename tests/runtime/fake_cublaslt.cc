#include "tests/runtime/fake_cublaslt.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "base/float_format.h"

namespace hone::test {

namespace {

using cublaslt::Heuristic;
using cublaslt::Layout;
using cublaslt::MatmulDesc;
using cublaslt::Preference;

FakeCublaslt* cublaslt_in_use = nullptr;

struct FakeDesc {
  int transposed_first = 0, transposed_second = 0;
  std::uint32_t epilogue = 0;
  void* vector = nullptr;
  int vector_type = -1;
};
struct FakeLayout {
  int type = 0;
  std::int64_t rows = 0, columns = 0, leading = 0, stride = 0;
  std::int32_t batch = 1;
};

const FakeLayout& of(Layout layout) { return *reinterpret_cast<FakeLayout*>(layout); }
const FakeDesc& of(MatmulDesc desc) { return *reinterpret_cast<FakeDesc*>(desc); }

std::size_t width(int type) { return type == cublaslt::kF32 ? 4 : 2; }
DType narrow(int type) { return type == cublaslt::kF16 ? DType::kF16 : DType::kBF16; }
double read(const void* data, int type, std::int64_t at) {
  const auto* element = static_cast<const std::byte*>(data) + static_cast<std::size_t>(at) * width(type);
  if (type != cublaslt::kF32) return read_storage(narrow(type), element);
  float value = 0;
  std::memcpy(&value, element, sizeof(value));
  return value;
}
void write(void* data, int type, std::int64_t at, double value) {
  auto* element = static_cast<std::byte*>(data) + static_cast<std::size_t>(at) * width(type);
  if (type != cublaslt::kF32) return write_storage(narrow(type), element, value);
  const auto number = static_cast<float>(value);
  std::memcpy(element, &number, sizeof(number));
}

template <typename Made, typename Handle>
cublaslt::Status make(Handle* handle, Made made) {
  ++cublaslt_in_use->alive;
  *handle = reinterpret_cast<Handle>(new Made(made));
  return 0;
}
template <typename Made, typename Handle>
cublaslt::Status destroy(Handle handle) {
  --cublaslt_in_use->alive;
  delete reinterpret_cast<Made*>(handle);
  return 0;
}

/// d = op(a) op(b), as the library's manual has it.
void multiply(const FakeDesc& desc, const void* a, const FakeLayout& a_layout, const void* b, const FakeLayout& b_layout, void* d, const FakeLayout& d_layout) {
  const std::int64_t inner = desc.transposed_first != 0 ? a_layout.rows : a_layout.columns;
  for (std::int64_t i = 0; i < d_layout.batch; ++i)
    for (std::int64_t column = 0; column < d_layout.columns; ++column)
      for (std::int64_t row = 0; row < d_layout.rows; ++row) {
        double sum = 0;
        for (std::int64_t k = 0; k < inner; ++k) {
          const std::int64_t at_a = desc.transposed_first != 0 ? k + row * a_layout.leading : row + k * a_layout.leading;
          const std::int64_t at_b = desc.transposed_second != 0 ? column + k * b_layout.leading : k + column * b_layout.leading;
          sum += read(a, a_layout.type, i * a_layout.stride + at_a) * read(b, b_layout.type, i * b_layout.stride + at_b);
        }
        const bool relu = desc.epilogue == cublaslt::kEpilogueReluBias;
        if (relu or desc.epilogue == cublaslt::kEpilogueBias) sum += read(desc.vector, desc.vector_type, row);  // of as many elements as d has rows
        if (relu and (sum < 0 or (cublaslt_in_use->drops_nans and std::isnan(sum)))) sum = 0;
        write(d, d_layout.type, i * d_layout.stride + row + column * d_layout.leading, sum);
      }
}

/// The sums of a's rows, or of b's columns: bias gradients, as the manual has them.
void sum_over_k(const FakeDesc& desc, const void* a, const FakeLayout& a_layout, const void* b, const FakeLayout& b_layout) {
  const bool of_a = desc.epilogue == cublaslt::kEpilogueBiasGradA;
  const FakeLayout& layout = of_a ? a_layout : b_layout;
  const bool k_is_column = of_a ? desc.transposed_first == 0 : desc.transposed_second != 0;
  const std::int64_t count = k_is_column ? layout.rows : layout.columns, inner = k_is_column ? layout.columns : layout.rows;
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < inner; ++k) sum += read(of_a ? a : b, layout.type, k_is_column ? i + k * layout.leading : k + i * layout.leading);
    write(desc.vector, desc.vector_type, i, sum);
  }
}

}  // namespace

cublaslt::Library library_of(FakeCublaslt& of_test) {
  cublaslt_in_use = &of_test;
  cublaslt::Library f;
  f.get_version = [] { return std::size_t{130000}; };
  f.status_name = [](cublaslt::Status) { return "CUBLAS_STATUS_EXECUTION_FAILED"; };
  f.status_text = [](cublaslt::Status) { return "as the library puts it"; };
  f.desc_create = [](MatmulDesc* desc, int compute, int scale) {
    cublaslt_in_use->compute = compute;
    return scale == cublaslt::kF32 ? make(desc, FakeDesc{}) : 7;
  };
  f.desc_set = [](MatmulDesc desc, int attribute, const void* value, std::size_t bytes) {
    auto& made = *reinterpret_cast<FakeDesc*>(desc);
    const std::map<int, std::pair<void*, std::size_t>> places = {{cublaslt::kDescTransA, {&made.transposed_first, sizeof(made.transposed_first)}},
                                                                 {cublaslt::kDescTransB, {&made.transposed_second, sizeof(made.transposed_second)}},
                                                                 {cublaslt::kDescEpilogue, {&made.epilogue, sizeof(made.epilogue)}},
                                                                 {cublaslt::kDescBiasPointer, {&made.vector, sizeof(made.vector)}},
                                                                 {cublaslt::kDescBiasType, {&made.vector_type, sizeof(made.vector_type)}}};
    const auto place = places.find(attribute);
    if (place == places.end() or place->second.second != bytes) return 7;
    std::memcpy(place->second.first, value, bytes);
    return 0;
  };
  f.desc_destroy = destroy<FakeDesc, MatmulDesc>;
  f.layout_create = [](Layout* layout, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t leading) {
    return make(layout, FakeLayout{.type = type, .rows = static_cast<std::int64_t>(rows), .columns = static_cast<std::int64_t>(columns), .leading = leading});
  };
  f.layout_set = [](Layout layout, int attribute, const void* value, std::size_t bytes) {
    auto& made = *reinterpret_cast<FakeLayout*>(layout);
    if (attribute == cublaslt::kLayoutBatchCount and bytes == sizeof(made.batch)) return std::memcpy(&made.batch, value, bytes), 0;
    if (attribute == cublaslt::kLayoutBatchStride and bytes == sizeof(made.stride)) return std::memcpy(&made.stride, value, bytes), 0;
    return 7;
  };
  f.layout_destroy = destroy<FakeLayout, Layout>;
  f.preference_create = [](Preference* preference) { return make(preference, 0); };
  f.preference_set = [](Preference, int attribute, const void* value, std::size_t bytes) {
    if (attribute == cublaslt::kMaxWorkspace and bytes == sizeof(std::uint64_t)) std::memcpy(&cublaslt_in_use->allowed_workspace, value, bytes);
    else if (bytes != sizeof(std::uint32_t)) return 7;
    else std::memcpy(attribute == cublaslt::kReductionSchemes ? &cublaslt_in_use->reductions : &cublaslt_in_use->alignment, value, bytes);
    return 0;
  };
  f.preference_destroy = destroy<int, Preference>;
  f.heuristic = [](cublaslt::Handle, MatmulDesc, Layout, Layout, Layout, Layout, Preference, int wanted, Heuristic* found, int* count) {
    const FakeCublaslt::Algorithm usual = {.workspace = cublaslt_in_use->wanted_workspace};
    const std::vector<FakeCublaslt::Algorithm> known = cublaslt_in_use->algorithms.empty() ? std::vector(static_cast<std::size_t>(cublaslt_in_use->recommended), usual) : cublaslt_in_use->algorithms;
    *count = std::min(wanted, static_cast<int>(known.size()));
    for (std::size_t i = 0; i < static_cast<std::size_t>(*count); ++i)
      found[i] = Heuristic{.algorithm = {{known[i].number}}, .workspace = known[i].workspace, .status = known[i].status, .waves = 1, .reserved = {}};
    return 0;
  };
  f.matmul = [](cublaslt::Handle, MatmulDesc desc, const void* alpha, const void* a, Layout a_layout, const void* b, Layout b_layout, const void* beta, const void* c, Layout, void* d, Layout d_layout,
                const cublaslt::Algorithm* algorithm, void*, std::size_t, cuda::StreamHandle) {
    ++cublaslt_in_use->calls;
    if (cublaslt_in_use->next_failure != 0) return cublaslt_in_use->next_failure;
    if (*static_cast<const float*>(alpha) != 1 or *static_cast<const float*>(beta) != 0 or c != d) return 7;
    cublaslt_in_use->used_algorithm = algorithm->data[0];
    for (const FakeCublaslt::Algorithm& known : cublaslt_in_use->algorithms)
      if (known.number == algorithm->data[0]) cublaslt_in_use->milliseconds += known.milliseconds;
    multiply(of(desc), a, of(a_layout), b, of(b_layout), d, of(d_layout));
    cublaslt_in_use->epilogue = of(desc).epilogue;
    if (of(desc).epilogue == cublaslt::kEpilogueBiasGradA or of(desc).epilogue == cublaslt::kEpilogueBiasGradB) sum_over_k(of(desc), a, of(a_layout), b, of(b_layout));
    return 0;
  };
  return f;
}

}  // namespace hone::test
