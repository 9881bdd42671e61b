// Plan files: what is saved is loaded; whatever is damaged is an Error that says so.
#include "runtime/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "base/diag.h"
#include "base/files.h"
#include "base/text.h"

namespace hone::plan {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

Entry sample_entry() {
  const Dim n = Dim::symbol("N");
  Entry entry;
  entry.name = kTrainStep;
  entry.feeds = {{.name = "x", .kind = Feed::Kind::kModelInput, .dtype = DType::kF32, .shape = {n, 4}, .bounds = {}, .ignored = {}},
                 {.name = "target", .kind = Feed::Kind::kTarget, .dtype = DType::kI64, .shape = {n}, .bounds = {{0, 10}}, .ignored = -100}};
  entry.buffers = {{.name = "x", .dtype = DType::kF32, .shape = {n, 4}, .storage = Buffer::Storage::kFeed, .index = 0},
                   {.name = "w", .dtype = DType::kF32, .shape = {4, 2}, .storage = Buffer::Storage::kPersistent, .index = 0},
                   {.name = "y", .dtype = DType::kF32, .shape = {n, 2}, .first_step = 0, .last_step = 3},
                   {.name = "y flat", .dtype = DType::kF32, .shape = {n * Dim(2)}, .storage = Buffer::Storage::kView, .index = 2},
                   {.name = "loss_sum", .dtype = DType::kF32, .shape = {}, .first_step = 1, .last_step = 4},
                   {.name = "workspace", .dtype = DType::kU8, .shape = {n}, .first_step = 0, .last_step = 3, .opaque = true}};
  entry.steps = {{LibraryStep{"onednn.matmul", {{"ta", {0}}, {"tb", {0}}, {"pads", {n, 3}}}, {0, 1, -1}, {2, 5}, KernelStep{"matmul_0", {0, 1, 2}, {n}, n * Dim(2), n * Dim(8), 2}}, "fc/MatMul"},
                 {KernelStep{"sum_squares", {3, 4}, {n}, Dim(1), n * Dim(4) + Dim(3)}, "loss"},
                 {HostStep{"sort", {{"descending", {1}}}, {2}, {-1}}, "sort"},
                 {CopyStep{3, 2}, "copy"},
                 {AllReduceStep{{1, 4}, 7}, "all_reduce"}};
  entry.results = {{kLossSum, 4}, {"w", 1}};
  entry.equations = {{n, floordiv(n * Dim(2), 2)}};
  return entry;
}

Plan sample_plan() {
  Plan plan;
  plan.model_name = "m\xff.onnx";  // not UTF-8
  plan.recipe_json = R"({"train":{"epochs":3}})";
  plan.onnx_model = bytes_of("model bytes");
  plan.batch_symbol = "N";
  plan.graphs = {{"training", "graph { }"}, {"fused", "graph { fused }"}};
  const std::vector<float> w = {1, 2, 3, 4, 5, 6, 7, 8};
  Program program;
  program.target = "cpu";
  program.code = {{"x86-64-v3", bytes_of("elf three")}, {"x86-64-v4", bytes_of("elf four")}};
  program.persistents = {{"w", Persistent::Role::kWeight, true, true, Tensor::of<float>({4, 2}, w)},
                         {"w/moment", Persistent::Role::kState, true, false, Tensor::zeros(DType::kF32, {4, 2})},
                         {"empty", Persistent::Role::kConstant, false, false, Tensor::zeros(DType::kI64, {0, 3})}};
  program.entries = {sample_entry()};
  plan.programs = {program, program};
  plan.programs[1].target = "sim";
  return plan;
}

class PlanFile : public testing::Test {
 protected:
  std::string path() const { return testing::TempDir() + "plan_test_" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".hone"; }
  ~PlanFile() override { remove_file(path()); }

  std::string saved(const Plan& plan) const {
    save(plan, path());
    return read_file(path());
  }
  /// The error that loading these bytes gives; nothing when it succeeds.
  std::optional<Diag> error_of(std::string_view content) const {
    std::ofstream(path(), std::ios::binary) << content;  // thousands of these: without the sync of files.h
    try {
      load(path());
    } catch (const Error& error) { return error.diags().front(); }
    return std::nullopt;
  }
};

TEST_F(PlanFile, RoundTrips) {
  const Plan plan = sample_plan();
  const std::string first = saved(plan);
  const Plan loaded = load(path());
  EXPECT_EQ(saved(loaded), first);
  EXPECT_EQ(loaded.model_name, plan.model_name);
  EXPECT_EQ(loaded.recipe_json, plan.recipe_json);
  EXPECT_EQ(loaded.onnx_model, plan.onnx_model);
  EXPECT_EQ(loaded.graphs, plan.graphs);
  ASSERT_EQ(loaded.programs.size(), 2);
  const Program& program = loaded.programs[1];
  EXPECT_EQ(program.target, "sim");
  EXPECT_EQ(program.code, plan.programs[1].code);
  ASSERT_EQ(program.persistents.size(), 3);
  EXPECT_THAT(program.persistents[0].initial.data<float>(), testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(program.persistents[1].initial.data<float>(), testing::Each(0));
  EXPECT_EQ(program.persistents[1].role, Persistent::Role::kState);
  EXPECT_THAT(program.persistents[2].initial.shape(), testing::ElementsAre(0, 3));
  const Entry& entry = *program.find(kTrainStep);
  EXPECT_EQ(entry.feeds[1].bounds, std::pair(std::int64_t{0}, std::int64_t{10}));
  EXPECT_EQ(entry.feeds[1].ignored, -100);
  EXPECT_EQ(entry.buffers[3].shape[0], Dim::symbol("N") * Dim(2));
  EXPECT_TRUE(entry.buffers[5].opaque);
  const auto& library = std::get<LibraryStep>(entry.steps[0].what);
  EXPECT_EQ(library.attributes.at("pads")[0], Dim::symbol("N"));
  EXPECT_THAT(library.operands, testing::ElementsAre(0, 1, -1));
  ASSERT_TRUE(library.own_kernel);
  EXPECT_EQ(library.own_kernel->symbol, "matmul_0");
  EXPECT_THAT(library.own_kernel->buffers, testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(library.own_kernel->range, Dim::symbol("N") * Dim(2));
  EXPECT_EQ(library.own_kernel->read_only, 2U);
  EXPECT_EQ(std::get<HostStep>(entry.steps[2].what).attributes.at("descending"), std::vector<Dim>{1});
  EXPECT_EQ(std::get<AllReduceStep>(entry.steps[4].what).bucket, 7);
  EXPECT_EQ(entry.steps[4].origin, "all_reduce");
  EXPECT_EQ(entry.equations.size(), 1);
}

TEST_F(PlanFile, EmptyPlanRoundTrips) {
  saved(Plan{});
  EXPECT_TRUE(load(path()).programs.empty());
}

TEST_F(PlanFile, BytesThatProgramsShareAreStoredOnce) {
  Plan plan = sample_plan();
  plan.programs[0].persistents[0].initial =
      Tensor::make(DType::kF32, {4, 2}, [](std::span<std::byte> bytes) { std::fill(bytes.begin(), bytes.end(), std::byte{1}); });
  const std::size_t different = saved(plan).size();
  EXPECT_LT(saved(sample_plan()).size(), different);
}

TEST_F(PlanFile, BlobsAreAligned) {
  const std::string content = saved(sample_plan());
  EXPECT_EQ(content.find("elf three") % 64, 0);
  EXPECT_EQ(content.find("model bytes") % 64, 0);
}

TEST_F(PlanFile, EveryTruncationIsAnError) {
  const std::string content = saved(sample_plan());
  for (std::size_t length = 0; length < content.size(); length += length < 512 ? 1 : 37) {
    const std::optional<Diag> error = error_of(content.substr(0, length));
    ASSERT_TRUE(error) << length;
    EXPECT_EQ(error->code, Code::kPlanFormat) << length << ": " << error->message;
  }
}

TEST_F(PlanFile, EveryFlippedByteIsAnError) {
  const std::string content = saved(sample_plan());
  for (std::size_t at = 0; at < content.size(); ++at) {
    std::string flipped = content;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    const std::optional<Diag> error = error_of(flipped);
    ASSERT_TRUE(error) << at;
    EXPECT_TRUE(error->code == Code::kPlanFormat or error->code == Code::kPlanVersion) << at << ": " << error->message;
  }
}

TEST_F(PlanFile, BytesBehindTheEndAreAnError) { EXPECT_TRUE(error_of(saved(sample_plan()) + "x")); }

TEST_F(PlanFile, OtherFilesAreNotPlans) {
  for (const std::string_view content : {"", "x", "HONEPLA", "\x08\x07some onnx model or other, long enough to have a header of its own ........"}) {
    const std::optional<Diag> error = error_of(content);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, Code::kPlanFormat);
    EXPECT_THAT(error->message, testing::HasSubstr("not a plan"));
  }
}

/// Writes `value` at `at` and mends the hashes of table and header, so that the field itself is what is wrong.
template <typename T>
std::string with_field(std::string content, std::size_t at, T value) {
  std::memcpy(content.data() + at, &value, sizeof(value));
  std::uint32_t sections = 0;
  std::memcpy(&sections, content.data() + 12, sizeof(sections));
  if (64 + 32 * std::uint64_t{sections} <= content.size()) {
    const std::uint64_t table_hash = XXH64(content.data() + 64, 32 * std::size_t{sections}, 0);
    std::memcpy(content.data() + 24, &table_hash, sizeof(table_hash));
  }
  const std::uint64_t header_hash = XXH64(content.data(), 56, 0);
  std::memcpy(content.data() + 56, &header_hash, sizeof(header_hash));
  return content;
}

TEST_F(PlanFile, HeaderAndTableFieldsAreCheckedThemselves) {
  const std::string content = saved(sample_plan());
  EXPECT_FALSE(error_of(with_field(content, 12, std::uint32_t{[&] {
                                     std::uint32_t n = 0;
                                     std::memcpy(&n, content.data() + 12, 4);
                                     return n;
                                   }()})));
  const std::vector<std::pair<std::size_t, std::uint64_t>> fields = {{16, 0}, {16, ~0ULL}, {32, 1}, {48, 1}};
  for (const auto& [at, value] : fields) EXPECT_EQ(error_of(with_field(content, at, value))->code, Code::kPlanFormat) << at;
  for (const std::uint32_t count : {0U, 1U, 2U, 5U, 1000U, ~0U}) EXPECT_EQ(error_of(with_field(content, 12, count))->code, Code::kPlanFormat) << count;
  for (std::size_t section = 0; section < 4; ++section) {
    const std::size_t at = 64 + 32 * section;
    for (const std::uint64_t value : {0ULL, 64ULL, 1ULL << 40, ~0ULL, ~63ULL}) {
      EXPECT_EQ(error_of(with_field(content, at + 8, value))->code, Code::kPlanFormat) << section << " offset " << value;
      EXPECT_EQ(error_of(with_field(content, at + 16, value))->code, Code::kPlanFormat) << section << " bytes " << value;
    }
    EXPECT_EQ(error_of(with_field(content, at, std::uint32_t{3}))->code, Code::kPlanFormat);
    EXPECT_EQ(error_of(with_field(content, at + 4, std::uint32_t{1}))->code, Code::kPlanFormat);
  }
}

TEST_F(PlanFile, AnotherVersionIsRefusedByNumber) {
  const std::optional<Diag> error = error_of(with_field(saved(sample_plan()), 8, std::uint32_t{1}));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Code::kPlanVersion);
  EXPECT_THAT(error->message, testing::HasSubstr("format 1"));
}

TEST_F(PlanFile, AnUnknownFeatureIsRefusedByName) {
  std::string content = saved(sample_plan());
  const std::size_t at = content.find("kernel\n");
  content.replace(at, 6, "warp-9");
  std::uint64_t offset = 0, bytes = 0;
  std::memcpy(&offset, content.data() + 64 + 8, sizeof(offset));
  std::memcpy(&bytes, content.data() + 64 + 16, sizeof(bytes));
  const std::optional<Diag> error = error_of(with_field(content, 64 + 24, std::uint64_t{XXH64(content.data() + offset, bytes, 0)}));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Code::kPlanVersion);
  EXPECT_THAT(error->message, testing::HasSubstr("\"warp-9\""));
}

/// The sample's product with the kernel behind it as one step: b[2] into y[N,2].
Plan plan_with_epilogue() {
  Plan plan = sample_plan();
  for (Program& program : plan.programs) {
    Entry& entry = program.entries[0];
    entry.buffers.push_back({.name = "z", .dtype = DType::kF32, .shape = {Dim::symbol("N"), 2}, .first_step = 0, .last_step = 0});
    std::get<LibraryStep>(entry.steps[0].what).operands.pop_back();
    std::get<LibraryStep>(entry.steps[0].what).epilogue =
        LibraryStep::Epilogue{.kernel = {"add_1", {2, 1, 6}, {Dim::symbol("N")}, Dim::symbol("N") * Dim(2), Dim(1), 2}, .row = "cublaslt.matmul_bias", .attributes = {{"relu", {1}}}, .operands = {0, 1, 1}, .results = {6}};
  }
  return plan;
}

TEST_F(PlanFile, EpiloguesRoundTripAndAreAFeature) {
  const Plan plan = plan_with_epilogue();
  const std::string first = saved(plan);
  const Plan loaded = load(path());
  EXPECT_EQ(saved(loaded), first);
  const auto& epilogue = std::get<LibraryStep>(loaded.programs[0].entries[0].steps[0].what).epilogue;
  ASSERT_TRUE(epilogue);
  EXPECT_EQ(epilogue->kernel.symbol, "add_1");
  EXPECT_EQ(epilogue->kernel.read_only, 2U);
  EXPECT_EQ(epilogue->row, "cublaslt.matmul_bias");
  EXPECT_EQ(epilogue->attributes.at("relu")[0], Dim(1));
  EXPECT_THAT(epilogue->operands, testing::ElementsAre(0, 1, 1));
  EXPECT_THAT(epilogue->results, testing::ElementsAre(6));
  EXPECT_NE(first.find("epilogues\n"), std::string::npos) << "readers that do not know it refuse it";
  EXPECT_EQ(saved(sample_plan()).find("epilogues\n"), std::string::npos);
}

TEST_F(PlanFile, AnEpilogueIsOfItsCall) {
  using Damage = std::function<void(LibraryStep&)>;
  const std::pair<const char*, Damage> cases[] = {
      {"is of no such call", [](LibraryStep& s) { s.own_kernel.reset(); }},
      {"is of no such call", [](LibraryStep& s) { s.epilogue->row.clear(); }},
      {"is of no such call", [](LibraryStep& s) { s.epilogue->kernel.own_part = true; }},
      {"uses buffer 4, which is not the call's", [](LibraryStep& s) { s.epilogue->kernel.buffers[1] = 4; }},
      {"uses buffer 1, which is not the call's", [](LibraryStep& s) { s.epilogue->kernel.read_only = 1; }},
      {"does not read buffer 3", [](LibraryStep& s) { s.epilogue->operands[2] = 3; }},
      {"does not write buffer 3", [](LibraryStep& s) { s.epilogue->results.push_back(3); }},
      {"uses buffer 77", [](LibraryStep& s) { s.epilogue->results[0] = 77; }},
      {"has no kernel", [](LibraryStep& s) { s.epilogue->kernel.symbol.clear(); }},
      {"uses buffer", [](LibraryStep& s) { s.epilogue->operands[2] = -1; }},
  };
  for (const auto& [message, damage] : cases) {
    Plan plan = plan_with_epilogue();
    damage(std::get<LibraryStep>(plan.programs[0].entries[0].steps[0].what));
    save(plan, path());
    try {
      load(path());
      ADD_FAILURE() << "loaded, but expected: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.diags().front().code, Code::kPlanFormat);
      EXPECT_THAT(error.what(), testing::HasSubstr(message));
    }
  }
}

TEST_F(PlanFile, WhatRefersToNothingIsRefused) {
  using Damage = std::function<void(Plan&, Entry&)>;
  const std::pair<const char*, Damage> cases[] = {
      {"is feed 9", [](Plan&, Entry& e) { e.buffers[0].index = 9; }},
      {"is persistent 3 of 3", [](Plan&, Entry& e) { e.buffers[1].index = 3; }},
      {"is a view of buffer 99", [](Plan&, Entry& e) { e.buffers[3].index = 99; }},
      {"is a view of itself", [](Plan&, Entry& e) { e.buffers[3].index = 3; }},
      {"is a view of itself",
       [](Plan&, Entry& e) {
         e.buffers[3].index = 2;
         e.buffers[2].storage = Buffer::Storage::kView;
         e.buffers[2].index = 3;
       }},
      {"is a view of an opaque buffer", [](Plan&, Entry& e) { e.buffers[3].index = 5; }},
      {"is opaque, but not in the arena", [](Plan&, Entry& e) { e.buffers[1].opaque = true; }},
      {"is alive from step 0 to 5", [](Plan&, Entry& e) { e.buffers[2].last_step = 5; }},
      {"is alive from step 3 to 2", [](Plan&, Entry& e) { e.buffers[2].first_step = 3, e.buffers[2].last_step = 2; }},
      {"uses buffer \"y flat\", which is alive", [](Plan&, Entry& e) { e.buffers[2].last_step = 2; }},
      {"is read after the last step", [](Plan&, Entry& e) { e.buffers[4].last_step = 3; }},
      {"uses buffer 99", [](Plan&, Entry& e) { std::get<KernelStep>(e.steps[1].what).buffers[0] = 99; }},
      {"uses buffer", [](Plan&, Entry& e) { std::get<LibraryStep>(e.steps[0].what).operands[0] = -2; }},
      {"uses buffer 77", [](Plan&, Entry& e) { std::get<LibraryStep>(e.steps[0].what).results[0] = 77; }},
      {"uses buffer 4, which is not the call's", [](Plan&, Entry& e) { std::get<LibraryStep>(e.steps[0].what).own_kernel->buffers[0] = 4; }},
      {"uses buffer 0, which is not the call's", [](Plan&, Entry& e) { std::get<LibraryStep>(e.steps[0].what).own_kernel->read_only = 0; }},
      {"over a replica's own part", [](Plan&, Entry& e) { std::get<LibraryStep>(e.steps[0].what).own_kernel->own_part = true; }},
      {"has no kernel", [](Plan&, Entry& e) { std::get<LibraryStep>(e.steps[0].what).own_kernel->symbol.clear(); }},
      {"uses buffer 6", [](Plan&, Entry& e) { std::get<HostStep>(e.steps[2].what).results[0] = 6; }},
      {"uses buffer 6", [](Plan&, Entry& e) { std::get<CopyStep>(e.steps[3].what).from = 6; }},
      {"uses buffer 6", [](Plan&, Entry& e) { std::get<AllReduceStep>(e.steps[4].what).buffers[0] = 6; }},
      {"is exchanged from step 3 on to step 5, but its memory is given away after step 3", [](Plan&, Entry& e) { e.steps[3].what = AllReduceStep{{2}, 8}; }},
      {"writes to a feed", [](Plan&, Entry& e) { std::get<CopyStep>(e.steps[3].what).to = 0; }},
      {"has no kernel", [](Plan&, Entry& e) { std::get<KernelStep>(e.steps[1].what).symbol = ""; }},
      {"is buffer 6 of 6", [](Plan&, Entry& e) { e.results[0].buffer = 6; }},
      {"two results are called", [](Plan&, Entry& e) { e.results[1].name = kLossSum; }},
      {"two feeds are called", [](Plan&, Entry& e) { e.feeds[1].name = "x"; }},
      {"depends on the size \"M\"", [](Plan&, Entry& e) { e.buffers[2].shape[0] = Dim::symbol("M"); }},
      {"depends on the size \"M\"", [](Plan&, Entry& e) { std::get<KernelStep>(e.steps[1].what).sizes[0] = Dim::symbol("M"); }},
      {"depends on the size \"M\"", [](Plan&, Entry& e) { std::get<KernelStep>(e.steps[1].what).work = Dim::symbol("M"); }},
      {"depends on the size \"M\"", [](Plan&, Entry& e) { std::get<LibraryStep>(e.steps[0].what).attributes["pads"][0] = Dim::symbol("M"); }},
      {"depends on the size \"M\"", [](Plan&, Entry& e) { e.equations[0].second = Dim::symbol("M"); }},
      {"what it stands for is", [](Plan&, Entry& e) { e.buffers[0].dtype = DType::kF64; }},
      {"what it stands for is", [](Plan&, Entry& e) { e.buffers[1].shape[0] = 5; }},
      {"has bounds, but is f32", [](Plan&, Entry& e) { e.feeds[0].bounds = {0, 10}; }},
      {"must be a number of f64", [](Plan&, Entry& e) { e.feeds[1] = {.name = "rate", .kind = Feed::Kind::kLearningRate, .dtype = DType::kF32, .shape = {}, .bounds = {}, .ignored = {}}; }},
      {"result \"loss_sum\" is i32[], and must be a number of f32 or f64", [](Plan&, Entry& e) { e.buffers[4].dtype = DType::kI32; }},
      {"result \"loss_sum\" is f32[2], and must be a number", [](Plan&, Entry& e) { e.buffers[4].shape = {2}; }},
      {"result \"metric:auc\" is f32[N,2], and must be numbers", [](Plan&, Entry& e) { e.results.push_back({"metric:auc", 2}); }},
      {"which only a library knows how to read", [](Plan&, Entry& e) { std::get<CopyStep>(e.steps[3].what).from = 5; }},
      {"is a buffer that only a library knows how to read", [](Plan&, Entry& e) { e.results[1].buffer = 5; }},
      {"writes two results to the same memory", [](Plan&, Entry& e) { std::get<LibraryStep>(e.steps[0].what).results[1] = 2; }},
      {"writes a result where it reads \"y\"", [](Plan&, Entry& e) { std::get<HostStep>(e.steps[2].what).results[0] = 3; }},
      {"has 40 axes", [](Plan&, Entry& e) { e.buffers[2].shape.resize(40, Dim(1)); }},
      {"unknown storage", [](Plan&, Entry& e) { e.buffers[2].storage = static_cast<Buffer::Storage>(9); }},
      {"unknown kind of feed", [](Plan&, Entry& e) { e.feeds[0].kind = static_cast<Feed::Kind>(9); }},
      {"unknown role", [](Plan& p, Entry&) { p.programs[0].persistents[0].role = static_cast<Persistent::Role>(9); }},
      {"two weights or states are called", [](Plan& p, Entry&) { p.programs[0].persistents[1].name = "w"; }},
      {"two entries are called", [](Plan& p, Entry& e) { p.programs[0].entries.push_back(Entry(e)); }},
      {"two programs are called", [](Plan& p, Entry&) { p.programs[1].target = "cpu"; }},
  };
  for (const auto& [message, damage] : cases) {
    Plan plan = sample_plan();
    damage(plan, plan.programs[0].entries[0]);
    save(plan, path());
    try {
      load(path());
      ADD_FAILURE() << "loaded, but expected: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.diags().front().code, Code::kPlanFormat);
      EXPECT_THAT(error.what(), testing::HasSubstr(message));
    }
  }
}

}  // namespace
}  // namespace hone::plan
