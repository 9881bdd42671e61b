// The row cublaslt.matmul without a GPU: what the library is told describes the product that oneDNN computes, over random shapes; and what the real library's descriptors keep, where it is installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/diag.h"
#include "base/float_format.h"
#include "runtime/device/cublaslt_matmul.h"
#include "runtime/device/host_memory.h"
#include "tests/runtime/clocked_device.h"
#include "tests/runtime/fake_cublaslt.h"
#include "tests/runtime/random_tensor.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

cuda::StreamHandle any_stream(Stream) { return nullptr; }

/// What is taken without timing.
std::unique_ptr<DeviceCall> first_matmul(const cublaslt::Library& library, const LibrarySpec& spec) {
  std::vector<Candidate> candidates = cublaslt::make_matmuls(library, nullptr, spec, any_stream, 1);
  return candidates.empty() ? nullptr : std::move(candidates.front().call);
}

const LibraryRow& row() { return *find_library_row("cublaslt.matmul"); }

struct ProductCase {
  LibrarySpec spec;
  bool ta = false, tb = false;
};

/// Leading axes that are whole, 1 or missing in either operand.
ProductCase random_product(RandomTensors& random, DType operands, DType result) {
  std::vector<std::int64_t> y, a, b;
  for (std::int64_t i = random.between(0, 3); i > 0; --i) {
    const std::int64_t extent = random.between(1, 3), kind = random.between(0, 3);
    y.push_back(extent);
    a.push_back(kind == 1 ? 1 : extent);
    b.push_back(kind == 2 ? 1 : extent);
    if (kind == 1 and b.back() == 1) y.back() = 1;
  }
  while (not a.empty() and a.front() == 1 and random.flip()) a.erase(a.begin());
  while (not b.empty() and b.front() == 1 and random.flip()) b.erase(b.begin());
  const std::int64_t m = random.between(1, 9), n = random.between(1, 9), k = random.between(1, 9);
  ProductCase made{.ta = random.flip(), .tb = random.flip()};
  const auto with = [](std::vector<std::int64_t> shape, std::int64_t rows, std::int64_t columns, bool transposed) {
    shape.push_back(transposed ? columns : rows);
    shape.push_back(transposed ? rows : columns);
    return shape;
  };
  made.spec.attributes = {{"ta", {made.ta}}, {"tb", {made.tb}}};
  made.spec.operands = {TensorType{operands, with(a, m, k, made.ta)}, TensorType{operands, with(b, k, n, made.tb)}};
  made.spec.results = {TensorType{result, with(y, m, n, false)}};
  return made;
}

TEST(CublasLt, IsToldOfTheProductThatIsMeant) {
  RandomTensors random(3);
  for (int round = 0; round < 300; ++round) {
    const DType operands = std::array{DType::kF32, DType::kBF16, DType::kF16}[static_cast<std::size_t>(round % 3)];
    const ProductCase made = random_product(random, operands, random.flip() ? operands : DType::kF32);
    const auto a = random.numbers(*made.spec.operands[0]), b = random.numbers(*made.spec.operands[1]);
    FakeCublaslt fake;
    const cublaslt::Library library = library_of(fake);
    const std::vector<std::byte> expected = run_on_host(row(), made.spec, {a.data(), b.data()});
    std::vector<std::byte> found(expected.size(), std::byte{0xff});
    {
      const auto call = first_matmul(library, made.spec);
      ASSERT_NE(call, nullptr);
      const std::byte* const operand_pointers[] = {a.data(), b.data()};
      std::byte* const result_pointers[] = {found.data()};
      call->put(Stream{0}, operand_pointers, result_pointers, nullptr);
    }
    EXPECT_LT(largest_difference(made.spec.results[0], found, expected), made.spec.results[0].dtype == DType::kF32 ? 1e-5 : 0.02) << text_of(made.spec);
    EXPECT_EQ(fake.alive, 0) << "descriptors are given back";
  }
}

LibrarySpec product(std::vector<std::int64_t> a, std::vector<std::int64_t> b, std::vector<std::int64_t> y) {
  LibrarySpec spec;
  spec.operands = {TensorType{DType::kF32, std::move(a)}, TensorType{DType::kF32, std::move(b)}};
  spec.results = {TensorType{DType::kF32, std::move(y)}};
  return spec;
}

TEST(CublasLt, RowsOfAllBatchesAreRowsOfOneMatrix) {
  const cublaslt::Product made = cublaslt::product_of(product({4, 5, 6, 7}, {7, 3}, {4, 5, 6, 3}));
  EXPECT_EQ(made.m, 4 * 5 * 6);
  EXPECT_EQ(made.batch, 1);
  EXPECT_EQ(made.calls.size(), 1U);
}

TEST(CublasLt, HeadsOfAllSamplesAreOneBatch) {
  const cublaslt::Product made = cublaslt::product_of(product({4, 5, 6, 7}, {4, 5, 7, 3}, {4, 5, 6, 3}));
  EXPECT_EQ(made.batch, 20);
  EXPECT_THAT((std::array{made.stride_a, made.stride_b, made.stride_y}), ElementsAre(42, 21, 18));
  EXPECT_EQ(made.calls.size(), 1U);
}

TEST(CublasLt, AxesThatBelongToOneOperandOnlyAreCallsOfTheirOwn) {
  const cublaslt::Product made = cublaslt::product_of(product({1, 5, 6, 7}, {4, 1, 7, 3}, {4, 5, 6, 3}));
  EXPECT_EQ(made.m, 5 * 6) << "the inner axis is a's alone: more rows";
  EXPECT_EQ(made.batch, 4);
  EXPECT_EQ(made.stride_a, 0);
  EXPECT_EQ(made.stride_b, 21);
}

TEST(CublasLt, MayTakeAsMuchScratchAsThePlanKnowsOf) {
  FakeCublaslt fake;
  const cublaslt::Library library = library_of(fake);
  const LibrarySpec spec = product({64, 64}, {64, 64}, {64, 64});
  fake.wanted_workspace = device_scratch(spec);
  const auto call = first_matmul(library, spec);
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->scratch_bytes(), device_scratch(spec));
  EXPECT_EQ(fake.allowed_workspace, device_scratch(spec));
  EXPECT_EQ(fake.alignment, kLibraryAlignment);
  EXPECT_EQ(fake.reductions, cublaslt::kReductionInComputeType);
  ++fake.wanted_workspace;
  EXPECT_EQ(first_matmul(library, spec), nullptr) << "it would be more than the peak that was told";
  fake.wanted_workspace = 0, fake.recommended = 0;
  EXPECT_EQ(first_matmul(library, spec), nullptr) << "the library has no algorithm: the plan's own kernel does it";
}

/// In the order of the library's recommendation, each by its own name, and none that asks for too much.
TEST(CublasLt, AllAlgorithmsThatFitCanBeTried) {
  FakeCublaslt fake;
  const cublaslt::Library library = library_of(fake);
  const LibrarySpec spec = product({3, 2}, {2, 4}, {3, 4});
  fake.algorithms = {{.number = 7, .workspace = 64}, {.number = 8, .workspace = device_scratch(spec) + 1}, {.number = 9, .status = 15}, {.number = 10}, {.number = 11}};
  {
    const std::vector<Candidate> candidates = cublaslt::make_matmuls(library, nullptr, spec, any_stream, 4);
    ASSERT_EQ(candidates.size(), 2U) << "of four that were asked for";
    EXPECT_EQ(candidates[0].call->scratch_bytes(), 64U);
    EXPECT_EQ(candidates[1].call->scratch_bytes(), 0U);
    EXPECT_NE(candidates[0].name, candidates[1].name);
    const std::vector<Candidate> again = cublaslt::make_matmuls(library, nullptr, spec, any_stream, 4);
    EXPECT_EQ(again[1].name, candidates[1].name) << "in every run";
    std::vector<std::byte> memory(256);
    const std::byte* const operands[] = {memory.data(), memory.data()};
    std::byte* const results[] = {memory.data() + 128};
    candidates[1].call->put(Stream{0}, operands, results, nullptr);
    EXPECT_EQ(fake.used_algorithm, 10U);
  }
  EXPECT_EQ(fake.alive, 0);
}

/// From the library's recommendations to a choice that the next session finds in its file.
TEST(CublasLt, TheFastestAlgorithmIsChosenByTiming) {
  const TempFolder folder;
  const LibrarySpec spec = product({3, 2}, {2, 4}, {3, 4});
  FakeCublaslt fake;
  ClockedDevice device(fake.milliseconds);
  const cublaslt::Library library = library_of(fake);
  fake.algorithms = {{.number = 7, .milliseconds = 6}, {.number = 8, .milliseconds = 1}, {.number = 9, .milliseconds = 4}};
  const auto used = [&](Choices& choices) {
    const auto call = choices.choose(device, "a product", spec, cublaslt::make_matmuls(library, nullptr, spec, any_stream, 4));
    std::vector<std::byte> memory(256);
    const std::byte* const operands[] = {memory.data(), memory.data()};
    std::byte* const results[] = {memory.data() + 128};
    call->put(Stream{0}, operands, results, nullptr);
    return fake.used_algorithm;
  };
  Choices by_timing(Choices::By::kTiming, folder / "choices.json"), by_rule;
  EXPECT_EQ(used(by_timing), 8U);
  EXPECT_EQ(used(by_rule), 7U);
  Choices later(Choices::By::kTiming, folder / "choices.json");
  fake.calls = 0;
  EXPECT_EQ(used(later), 8U);
  EXPECT_EQ(fake.calls, 1) << "nothing was tried";
}

TEST(CublasLt, F32IsF32UnlessItMayBeTf32) {
  const auto compute = [](DType dtype, bool tf32) {
    FakeCublaslt fake;
    const cublaslt::Library library = library_of(fake);
    LibrarySpec spec = product({4, 4}, {4, 4}, {4, 4});
    for (auto& operand : spec.operands) operand->dtype = dtype;
    if (tf32) spec.attributes["tf32"] = {1};
    EXPECT_NE(first_matmul(library, spec), nullptr);
    return fake.compute;
  };
  EXPECT_EQ(compute(DType::kF32, false), cublaslt::kComputeF32);
  EXPECT_EQ(compute(DType::kF32, true), cublaslt::kComputeTf32);
  EXPECT_EQ(compute(DType::kBF16, true), cublaslt::kComputeF32) << "there is nothing to round";
}

/// y = a b + bias, with relu or without; in one of three types, the bias in that or in f32.
ProductCase random_biased(RandomTensors& random, DType dtype) {
  ProductCase made{.ta = random.flip(), .tb = random.flip()};
  const std::int64_t m = random.between(1, 9), n = random.between(1, 9), k = random.between(1, 9);
  using Extents = std::vector<std::int64_t>;
  made.spec.attributes = {{"ta", {made.ta}}, {"tb", {made.tb}}, {"relu", {random.flip()}}};
  made.spec.operands = {TensorType{dtype, made.ta ? Extents{k, m} : Extents{m, k}}, TensorType{dtype, made.tb ? Extents{n, k} : Extents{k, n}}, TensorType{random.flip() ? dtype : DType::kF32, {n}}};
  made.spec.results = {TensorType{dtype, {m, n}}};
  return made;
}

TEST(CublasLt, AddsABiasInTheSameCall) {
  RandomTensors random(5);
  for (int round = 0; round < 100; ++round) {
    const DType dtype = std::array{DType::kF32, DType::kBF16, DType::kF16}[static_cast<std::size_t>(round % 3)];
    const ProductCase made = random_biased(random, dtype);
    const auto a = random.numbers(*made.spec.operands[0]), b = random.numbers(*made.spec.operands[1]), bias = random.numbers(*made.spec.operands[2]);
    const std::vector<std::byte> expected = run_on_host(*find_library_row("cublaslt.matmul_bias"), made.spec, {a.data(), b.data(), bias.data()});
    FakeCublaslt fake;
    const cublaslt::Library library = library_of(fake);
    std::vector<std::byte> found(expected.size(), std::byte{0xff});
    const auto call = first_matmul(library, made.spec);
    ASSERT_NE(call, nullptr);
    const std::byte* const operands[] = {a.data(), b.data(), bias.data()};
    std::byte* const results[] = {found.data()};
    call->put(Stream{0}, operands, results, nullptr);
    EXPECT_LT(largest_difference(made.spec.results[0], found, expected), dtype == DType::kF32 ? 1e-5 : 0.02) << text_of(made.spec);
    EXPECT_EQ(fake.epilogue, made.spec.attributes.at("relu")[0] != 0 ? cublaslt::kEpilogueReluBias : cublaslt::kEpilogueBias);
  }
}

/// dw = x^T dy and the sum of dy's rows, with dy in either place.
TEST(CublasLt, SumsTheGradientOfABiasInTheSameCall) {
  RandomTensors random(6);
  for (int round = 0; round < 100; ++round) {
    const std::int64_t of = round % 2, m = random.between(1, 9), n = random.between(1, 9), k = random.between(1, 9);
    LibrarySpec spec;
    spec.attributes = {{"ta", {1}}, {"tb", {0}}, {"of", {of}}};
    spec.operands = {TensorType{DType::kBF16, {k, m}}, TensorType{DType::kBF16, {k, n}}};
    spec.results = {TensorType{DType::kF32, {m, n}}, TensorType{DType::kF32, {1, of == 0 ? m : n}}};
    const auto a = random.numbers(*spec.operands[0]), b = random.numbers(*spec.operands[1]);
    const auto on_host = find_library_row("cublaslt.matmul_bias_grad")->make(spec);
    FakeCublaslt fake;
    const cublaslt::Library library = library_of(fake);
    const auto call = first_matmul(library, spec);
    ASSERT_NE(call, nullptr);
    std::vector<std::vector<std::byte>> found, expected;
    for (const std::size_t bytes : on_host->description().result_bytes) found.emplace_back(bytes, std::byte{0xff}), expected.emplace_back(bytes, std::byte{0xff});
    const std::byte* const operands[] = {a.data(), b.data()};
    std::byte* const results[] = {found[0].data(), found[1].data()};
    call->put(Stream{0}, operands, results, nullptr);
    const HostMemory scratch(on_host->description().scratch_bytes, "scratch");
    const void* const read[] = {a.data(), b.data()};
    void* const written[] = {expected[0].data(), expected[1].data()};
    on_host->execute(read, written, scratch.data());
    for (std::size_t i = 0; i < 2; ++i) EXPECT_LT(largest_difference(spec.results[i], found[i], expected[i]), 1e-5) << text_of(spec);
    EXPECT_EQ(fake.epilogue, of == 0 ? cublaslt::kEpilogueBiasGradB : cublaslt::kEpilogueBiasGradA) << "b is the library's first";
  }
}

TEST(CublasLt, ManyMatricesHaveNoEpilogue) {
  FakeCublaslt fake;
  const cublaslt::Library library = library_of(fake);
  LibrarySpec spec = product({4, 5, 6}, {4, 6, 3}, {4, 5, 3});
  EXPECT_NE(first_matmul(library, spec), nullptr);
  spec.operands.push_back(TensorType{DType::kF32, {3}});
  EXPECT_EQ(first_matmul(library, spec), nullptr);
  EXPECT_EQ(fake.alive, 0);
}

/// A relu that makes numbers of NaNs would hide a run that is lost: what the library does is tried before it is taken.
TEST(CublasLt, AReluThatLosesNansIsNotTaken) {
  LibrarySpec spec = product({3, 2}, {2, 4}, {3, 4});
  spec.operands.push_back(TensorType{DType::kF32, {4}});
  const LibrarySpec without = product({3, 2}, {2, 4}, {3, 4});
  for (const bool drops : {false, true})
    for (const bool relu : {false, true}) {
      FakeCublaslt fake;
      fake.drops_nans = drops;
      ClockedDevice device(fake.milliseconds);
      const cublaslt::Library library = library_of(fake);
      fake.algorithms = {{.number = 7, .milliseconds = 4}, {.number = 8, .milliseconds = 1}};
      spec.attributes["relu"] = {relu};
      const auto rival = first_matmul(library, without);  // it ignores the bias: only its time counts
      Choices by_timing(Choices::By::kTiming), by_rule;
      const auto chosen = by_timing.choose_over(*rival, device, "with a bias", spec, cublaslt::make_matmuls(library, nullptr, spec, any_stream, 4));
      EXPECT_EQ(chosen == nullptr, drops and relu);
      EXPECT_EQ(by_rule.choose_over(*rival, device, "with a bias", spec, cublaslt::make_matmuls(library, nullptr, spec, any_stream, 4)), nullptr) << "--deterministic";
      fake.algorithms.erase(fake.algorithms.begin() + 1);
      EXPECT_EQ(by_timing.choose_over(*rival, device, "another one", spec, cublaslt::make_matmuls(library, nullptr, spec, any_stream, 4)), nullptr) << "as fast is not faster";
    }
}

TEST(CublasLt, AProductThatFailsLosesTheDevice) {
  FakeCublaslt fake;
  const cublaslt::Library library = library_of(fake);
  const auto call = first_matmul(library, product({2, 2}, {2, 2}, {2, 2}));
  fake.next_failure = 13;
  const std::byte* const operands[] = {nullptr, nullptr};
  std::byte* const results[] = {nullptr};
  try {
    call->put(Stream{0}, operands, results, nullptr);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.diags().front().code, Code::kDeviceLost);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cublasLtMatmul"), HasSubstr("CUBLAS_STATUS_EXECUTION_FAILED"), HasSubstr("as the library puts it")));
  }
}

TEST(CublasLt, ALibraryThatIsNoneIsRefused) {
  std::string why;
  const char* const none[] = {"libcublasLt_of_nobody.so"};
  EXPECT_EQ(open_library<cublaslt::Library>(none, &why), nullptr);
  EXPECT_THAT(why, HasSubstr("libcublasLt_of_nobody"));
  const char* const other[] = {"libm.so.6"};
  EXPECT_EQ(open_library<cublaslt::Library>(other, &why), nullptr);
  EXPECT_THAT(why, HasSubstr("cublasLtGetVersion"));
}

/// What the real library has kept of it; choosing an algorithm needs a GPU.
TEST(CublasLt, TheRealLibrarysDescriptorsKeepWhatTheyAreTold) {
  std::string why;
  const cublaslt::Library* library = cublaslt::library(&why);
  if (library == nullptr) GTEST_SKIP() << "no cuBLASLt here: " << why;
  RandomTensors random(4);
  for (int round = 0; round < 50; ++round) {
    const ProductCase made = random_product(random, DType::kBF16, DType::kF32);
    const cublaslt::Product product = cublaslt::product_of(made.spec);
    const cublaslt::Descriptors descriptors(*library, product);
    const auto get = [&](cublaslt::Layout layout, int attribute, auto value) {
      std::size_t written = 0;
      EXPECT_EQ(library->layout_get(layout, attribute, &value, sizeof(value), &written), 0);
      EXPECT_EQ(written, sizeof(value));
      return value;
    };
    constexpr int kType = 0, kRows = 2, kColumns = 3, kLeading = 4;
    EXPECT_EQ(get(descriptors.first, kType, std::uint32_t{}), static_cast<std::uint32_t>(cublaslt::kBF16));
    EXPECT_EQ(get(descriptors.result, kType, std::uint32_t{}), static_cast<std::uint32_t>(cublaslt::kF32));
    EXPECT_EQ(get(descriptors.result, kRows, std::uint64_t{}), static_cast<std::uint64_t>(product.n));
    EXPECT_EQ(get(descriptors.result, kColumns, std::uint64_t{}), static_cast<std::uint64_t>(product.m));
    EXPECT_EQ(get(descriptors.first, kLeading, std::int64_t{}), product.tb ? product.k : product.n);
    EXPECT_EQ(get(descriptors.second, kLeading, std::int64_t{}), product.ta ? product.m : product.k);
    EXPECT_EQ(get(descriptors.second, cublaslt::kLayoutBatchStride, std::int64_t{}), product.stride_a);
    EXPECT_EQ(get(descriptors.first, cublaslt::kLayoutBatchCount, std::int32_t{}), product.batch);
    std::int32_t transposed = -1;
    std::size_t written = 0;
    EXPECT_EQ(library->desc_get(descriptors.matmul, cublaslt::kDescTransA, &transposed, sizeof(transposed), &written), 0);
    EXPECT_EQ(transposed, product.tb ? 1 : 0);
  }
  for (int round = 0; round < 20; ++round) {
    const ProductCase made = random_biased(random, DType::kBF16);
    const cublaslt::Descriptors descriptors(*library, cublaslt::product_of(made.spec));
    const auto get = [&](int attribute, auto value) {
      std::size_t written = 0;
      EXPECT_EQ(library->desc_get(descriptors.matmul, attribute, &value, sizeof(value), &written), 0);
      EXPECT_EQ(written, sizeof(value));
      return value;
    };
    EXPECT_EQ(get(cublaslt::kDescEpilogue, std::uint32_t{}), made.spec.attributes.at("relu")[0] != 0 ? cublaslt::kEpilogueReluBias : cublaslt::kEpilogueBias);
    EXPECT_EQ(get(cublaslt::kDescBiasType, std::int32_t{}), made.spec.operands[2]->dtype == DType::kF32 ? cublaslt::kF32 : cublaslt::kBF16);
    const std::byte vector{};
    descriptors.set_vector(&vector);
    EXPECT_EQ(get(cublaslt::kDescBiasPointer, static_cast<const std::byte*>(nullptr)), &vector);
  }
}

}  // namespace
}  // namespace hone::test
