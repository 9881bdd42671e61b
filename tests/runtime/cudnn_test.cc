// The rows cudnn.conv, conv_input_grad and conv_weight_grad without a GPU: what the library is told describes what oneDNN computes, over random convolutions; which engines are taken; and that the
// real library takes them all, where it is installed, for a GPU that is described to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/diag.h"
#include "runtime/device/cudnn_conv.h"
#include "tests/runtime/fake_cudnn.h"
#include "tests/runtime/random_tensor.h"
#include "tests/support/described_gpu.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

cuda::StreamHandle the_null_stream(Stream) { return nullptr; }

/// What is taken without timing.
std::unique_ptr<DeviceCall> first_convolution(const cudnn::Library& library, const cudnn::Descriptor& device, const LibraryRow& row, const LibrarySpec& spec, std::string* why_not = nullptr) {
  std::vector<Candidate> candidates = cudnn::make_convolutions(library, nullptr, device, row, spec, the_null_stream, 1, why_not);
  return candidates.empty() ? nullptr : std::move(candidates.front().call);
}

constexpr const char* kPassRows[] = {"cudnn.conv", "cudnn.conv_input_grad", "cudnn.conv_weight_grad"};

/// Of one to three spatial axes, in groups or not, channels last or first; the windows need not reach the end of x.
LibrarySpec random_convolution(RandomTensors& random, std::string_view row, DType dtype) {
  const std::int64_t space = random.between(1, 3), groups = random.flip() ? 1 : 2, channels = groups * random.between(1, 3), outputs = groups * random.between(1, 3), batch = random.between(1, 2);
  const bool channels_last = random.flip();
  std::vector<std::int64_t> x = {batch, channels}, w = {outputs, channels / groups}, y = {batch, outputs};
  LibrarySpec spec;
  for (std::int64_t i = 0; i < space; ++i) {
    const std::int64_t kernel = random.between(1, 3), stride = random.between(1, 2), dilation = random.between(1, 2), reach = (kernel - 1) * dilation + 1;
    const std::int64_t begin = random.between(0, kernel - 1), end = random.between(0, kernel - 1), input = random.between(std::max<std::int64_t>(1, reach - begin - end), 8);
    x.push_back(input), w.push_back(kernel), y.push_back((input + begin + end - reach) / stride + 1);
    spec.attributes["strides"].push_back(stride);
    spec.attributes["dilations"].push_back(dilation);
    spec.attributes["pads_begin"].push_back(begin);
    spec.attributes["pads_end"].push_back(end);
  }
  spec.attributes["groups"] = {groups};
  if (channels_last) {
    spec.attributes["channels_last"] = {1};
    for (auto* shape : {&x, &y}) std::rotate(shape->begin() + 1, shape->begin() + 2, shape->end());
  }
  const TensorType of_x{dtype, x}, of_w{dtype, w}, of_y{dtype, y};
  if (row == kPassRows[0]) spec.operands = {of_x, of_w}, spec.results = {of_y};
  else if (row == kPassRows[1]) spec.operands = {of_y, of_w}, spec.results = {of_x};
  else spec.operands = {of_x, of_y}, spec.results = {of_w};
  return spec;
}

cudnn::Descriptor any_device(const cudnn::Library& library) { return cudnn::device_properties(library, cudnn::Handle{}); }

TEST(Cudnn, IsToldOfTheConvolutionThatIsMeant) {
  RandomTensors random(5);
  for (int round = 0; round < 150; ++round) {
    const LibraryRow& row = *find_library_row(kPassRows[round % 3]);
    const LibrarySpec spec = random_convolution(random, row.name, DType::kF32);
    const auto first = random.numbers(*spec.operands[0]), second = random.numbers(*spec.operands[1]);
    const std::vector<std::byte> expected = run_on_host(row, spec, {first.data(), second.data()});
    std::vector<std::byte> found(expected.size(), std::byte{0xff});
    FakeCudnn fake;
    const cudnn::Library library = library_of(fake);
    {
      const cudnn::Descriptor device = any_device(library);
      std::string why;
      const auto call = first_convolution(library, device, row, spec, &why);
      ASSERT_NE(call, nullptr) << why;
      const std::byte* const operands[] = {first.data(), second.data()};
      std::byte* const results[] = {found.data()};
      call->put(Stream{0}, operands, results, nullptr);
    }
    EXPECT_LT(largest_difference(spec.results[0], found, expected), 1e-5) << row.name << " " << text_of(spec);
    EXPECT_EQ(fake.alive, 0) << "descriptors are given back";
  }
}

TEST(Cudnn, PadsBehindFitTheResultsExtent) {
  RandomTensors random(6);
  for (int round = 0; round < 200; ++round) {
    const LibraryRow& row = *find_library_row(kPassRows[0]);
    const LibrarySpec spec = random_convolution(random, row.name, DType::kF32);
    const cudnn::Convolution made = cudnn::convolution_of(row, spec);
    for (std::size_t i = 0; i < made.strides.size(); ++i) {
      const std::int64_t reach = (made.weight.extents[2 + i] - 1) * made.dilations[i] + 1;
      EXPECT_EQ((made.x.extents[2 + i] + made.pads_begin[i] + made.pads_end[i] - reach) / made.strides[i] + 1, made.y.extents[2 + i]) << text_of(spec);
      EXPECT_GE(made.pads_end[i], 0);
    }
  }
}

/// A small convolution of f32, or of bf16.
LibrarySpec small(DType dtype) {
  LibrarySpec spec;
  spec.operands = {TensorType{dtype, {1, 2, 4, 4}}, TensorType{dtype, {2, 2, 3, 3}}};
  spec.results = {TensorType{dtype, {1, 2, 2, 2}}};
  return spec;
}

/// The number of the engine that is taken, or -1.
int taken(std::vector<FakeCudnn::Engine> recommended, std::vector<FakeCudnn::Engine> fallback, DType dtype, bool tf32 = false) {
  FakeCudnn fake{.recommended = std::move(recommended), .fallback = std::move(fallback)};
  const cudnn::Library library = library_of(fake);
  const cudnn::Descriptor device = any_device(library);
  LibrarySpec spec = small(dtype);
  if (tf32) spec.attributes["tf32"] = {1};
  const auto call = first_convolution(library, device, *find_library_row(kPassRows[0]), spec);
  if (call == nullptr) return -1;
  fake.next_failure = 1;  // what it would compute is not the question
  EXPECT_THROW(call->put(Stream{0}, std::array<const std::byte*, 2>{}, std::array<std::byte*, 1>{}, nullptr), Error);
  return fake.used_engine;
}

TEST(Cudnn, TakesTheBestEngineWhoseNumbersAreAsWritten) {
  using Note = cudnn::Note;
  const auto too_much = static_cast<std::int64_t>(device_scratch(small(DType::kF32))) + 1;
  EXPECT_EQ(taken({{}, {}}, {}, DType::kF32), 0);
  EXPECT_EQ(taken({{{Note::kTensorCores}}, {{Note::kWinograd}}, {{Note::kFft}}, {}}, {}, DType::kF32), 3) << "f32 is f32";
  EXPECT_EQ(taken({{{Note::kWinograd}}, {{Note::kTensorCores, Note::kNarrowsInputs}}, {{Note::kTensorCores}}, {}}, {}, DType::kF32, true), 2) << "as TF32, and no narrower";
  EXPECT_EQ(taken({{{Note::kTensorCores}}, {}}, {}, DType::kBF16), 0);
  EXPECT_EQ(taken({{{Note::kTensorCores, Note::kNonDeterministic}}, {{Note::kNarrowsSums}}, {}}, {}, DType::kBF16), 2) << "sums come in one order, in f32";
  EXPECT_EQ(taken({{.notes = {}, .workspace = too_much}, {.notes = {}, .builds = false}}, {{}}, DType::kF32), 2) << "the fallbacks' first";
  EXPECT_EQ(taken({{{Note::kTensorCores}}}, {{.notes = {}, .workspace = too_much}}, DType::kF32), -1) << "the plan's own kernel does it";
  EXPECT_EQ(taken({}, {}, DType::kF32), -1);
}

/// The fallbacks are for where nothing is recommended, and not tried beside what is.
TEST(Cudnn, AllRecommendedEnginesThatFitCanBeTried) {
  const auto names = [](std::vector<FakeCudnn::Engine> recommended, std::vector<FakeCudnn::Engine> fallback) {
    FakeCudnn fake{.recommended = std::move(recommended), .fallback = std::move(fallback)};
    const cudnn::Library library = library_of(fake);
    const cudnn::Descriptor device = any_device(library);
    std::vector<std::string> list;
    for (const Candidate& candidate : cudnn::make_convolutions(library, nullptr, device, *find_library_row(kPassRows[0]), small(DType::kF32), the_null_stream, 3, nullptr)) list.push_back(candidate.name);
    return list;
  };
  EXPECT_THAT(names({{}, {{cudnn::Note::kFft}}, {}, {.notes = {}, .builds = false}, {}, {}}, {{}}), ElementsAre("recommended 0", "recommended 2", "recommended 4"));
  EXPECT_THAT(names({{}}, {{}, {}}), ElementsAre("recommended 0"));
  EXPECT_THAT(names({{{cudnn::Note::kFft}}}, {{{cudnn::Note::kFft}}, {}}), ElementsAre("fallback 1"));
  EXPECT_THAT(names({}, {}), IsEmpty());
}

TEST(Cudnn, AConvolutionThatFailsLosesTheDevice) {
  FakeCudnn fake;
  const cudnn::Library library = library_of(fake);
  const cudnn::Descriptor device = any_device(library);
  const auto call = first_convolution(library, device, *find_library_row(kPassRows[0]), small(DType::kF32));
  fake.next_failure = 5000;
  try {
    call->put(Stream{0}, std::array<const std::byte*, 2>{}, std::array<std::byte*, 1>{}, nullptr);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.diags().front().code, Code::kDeviceLost);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cudnnBackendExecute"), HasSubstr("CUDNN_STATUS_EXECUTION_FAILED"), HasSubstr("as the library puts it")));
  }
}

TEST(Cudnn, ALibraryThatIsNoneIsRefused) {
  std::string why;
  const char* const other[] = {"libm.so.6"};
  EXPECT_EQ(open_library<cudnn::Library>(other, &why), nullptr);
  EXPECT_THAT(why, HasSubstr("cudnnGetVersion"));
}

/// From its descriptors to an execution plan, all but running it.
TEST(Cudnn, TheRealLibraryTakesWhatItIsToldForAGpuThatIsDescribedToIt) {
  std::string why;
  const cudnn::Library* library = cudnn::library(&why);
  if (library == nullptr) GTEST_SKIP() << "no cuDNN here: " << why;
  const cudnn::Descriptor device = cudnn::device_properties(*library, kDescribedGpu);
  RandomTensors random(8);
  int planned = 0;
  for (int round = 0; round < 12; ++round) {
    const LibraryRow& row = *find_library_row(kPassRows[round % 3]);
    const LibrarySpec spec = random_convolution(random, row.name, round % 2 == 0 ? DType::kF32 : DType::kBF16);
    const cudnn::Convolution made = cudnn::convolution_of(row, spec);
    try {
      const cudnn::OperationGraph graph(*library, made);  // it must take every graph; not for all of them it has a way to compute it
      try {
        const std::vector<cudnn::Plan> plans = cudnn::choose_plans(*library, graph, device, made, device_scratch(spec), 3);
        for (const cudnn::Plan& plan : plans) EXPECT_LE(plan.scratch, device_scratch(spec));
        for (std::size_t i = 1; i < plans.size(); ++i) EXPECT_NE(plans[i].name, plans[i - 1].name);
        ++planned;
      } catch (const cudnn::Refused&) {
      }
    } catch (const cudnn::Refused& refused) {
      ADD_FAILURE() << row.name << " " << text_of(spec) << ": " << refused.what;
    }
  }
  EXPECT_GE(planned, 6);
}

/// What the engine of a plan notes of itself.
std::vector<cudnn::Note> notes_of(const cudnn::Library& library, const cudnn::Plan& plan) {
  cudnn::Descriptor engine(library, cudnn::Kind::kEngine);
  cudnn::RawDescriptor raw = engine.raw();
  (void)plan.config.get_raw(cudnn::Attribute::kConfigEngine, cudnn::Type::kDescriptor, 1, &raw);
  std::vector<cudnn::Note> notes(32);
  notes.resize(static_cast<std::size_t>(engine.get_raw(cudnn::Attribute::kEngineNotes, cudnn::Type::kNumericalNote, static_cast<std::int64_t>(notes.size()), notes.data())));
  return notes;
}

TEST(Cudnn, TheRealLibraryHasTensorCoresForTf32) {
  std::string why;
  const cudnn::Library* library = cudnn::library(&why);
  if (library == nullptr) GTEST_SKIP() << "no cuDNN here: " << why;
  const cudnn::Descriptor device = cudnn::device_properties(*library, kDescribedGpu);
  for (const char* name : kPassRows) {
    LibrarySpec spec;
    const TensorType x{DType::kF32, {16, 32, 32, 64}}, w{DType::kF32, {64, 64, 3, 3}}, y{DType::kF32, {16, 30, 30, 64}};
    spec.attributes["channels_last"] = {1};
    if (name == kPassRows[0]) spec.operands = {x, w}, spec.results = {y};
    else if (name == kPassRows[1]) spec.operands = {y, w}, spec.results = {x};
    else spec.operands = {x, y}, spec.results = {w};
    for (const bool tf32 : {false, true}) {
      if (tf32) spec.attributes["tf32"] = {1};
      const cudnn::Convolution made = cudnn::convolution_of(*find_library_row(name), spec);
      const cudnn::OperationGraph graph(*library, made);
      const cudnn::Plan plan = std::move(cudnn::choose_plans(*library, graph, device, made, device_scratch(spec), 1).front());
      EXPECT_THAT(notes_of(*library, plan), tf32 ? ::testing::Matcher<std::vector<cudnn::Note>>(::testing::Contains(cudnn::Note::kTensorCores)) : ::testing::Not(::testing::Contains(cudnn::Note::kTensorCores))) << name;
    }
  }
}

}  // namespace
}  // namespace hone::test
