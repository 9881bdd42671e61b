// Plans whose hashes are right and whose library and host steps are not: each call with an operand, type, rank, size or attribute changed. It is refused with a message, or runs; it never
// ends in an internal error, nor reads or writes what is not its own (the sanitizers look on).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "api/hone.h"
#include "base/check.h"
#include "base/diag.h"
#include "host/rules.h"
#include "runtime/device/host_memory.h"
#include "runtime/library/check_calls.h"
#include "runtime/library/rows.h"
#include "tests/runtime/hand_plan.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kFar = std::int64_t{1} << 45;  // more than a tensor may have
constexpr std::int64_t kIntMost = std::numeric_limits<std::int64_t>::max();

using Attributes = std::map<std::string, std::vector<Dim>>;

/// One step and its buffers, all of them in the arena.
struct Call {
  bool of_library = true;
  std::string name;
  Attributes attributes;
  std::vector<std::pair<DType, Shape>> operands, results;
};

constexpr DType kF = DType::kF32, kI = DType::kI64;

const Attributes kWindow = {{"strides", {2, 1}}, {"dilations", {1, 1}}, {"pads_begin", {1, 0}}, {"pads_end", {1, 0}}};
Attributes with(Attributes attributes, const Attributes& more) {
  attributes.insert(more.begin(), more.end());
  return attributes;
}

/// Something that runs for every row of the host's and of devices' libraries, and for every host function.
std::vector<Call> sound_calls() {
  const Attributes product = {{"ta", {0}}, {"tb", {1}}}, conv = with(kWindow, {{"groups", {2}}}), last = with(conv, {{"channels_last", {1}}}), pool = with(kWindow, {{"kernel", {3, 2}}});
  const std::pair<DType, Shape> a{kF, {2, 3, 4}}, b{kF, {5, 4}}, y{kF, {2, 3, 5}}, x{kF, {2, 4, 5, 6}}, w{kF, {6, 2, 3, 2}}, z{kF, {2, 6, 3, 5}}, pooled{kF, {2, 4, 3, 5}};
  const Attributes attention = {{"causal", {1}}, {"scale_bits", {0x3f000000}}};
  const std::pair<DType, Shape> query{DType::kBF16, {2, 2, 3, 4}}, key{DType::kBF16, {2, 2, 5, 4}}, statistics{kF, {2, 2, 3, 1}};
  const Attributes lstm = {{"cell", {2}}, {"gates", {0, 2, 3, 1}}, {"tf32", {0}}}, gru = {{"cell", {3}}, {"gates", {1, 0, 2}}, {"tf32", {1}}};
  const std::pair<DType, Shape> steps{kF, {3, 2, 4}}, state{kF, {2, 2}}, hidden{kF, {3, 2, 2}}, w4{kF, {8, 4}}, r4{kF, {8, 2}}, bias4{kF, {8}}, w3{kF, {6, 4}}, r3{kF, {6, 2}}, bias3{kF, {6}};
  std::vector<Call> calls = {
      {true, "onednn.matmul", product, {a, b}, {y}},
      {true, "onednn.matmul", product, {{kF, {0, 3, 4}}, b}, {{kF, {0, 3, 5}}}},
      {true, "onednn.matmul", product, {{kF, {3, 0}}, {kF, {5, 0}}}, {{kF, {3, 5}}}},
      {true, "onednn.conv", conv, {x, w}, {z}},
      {true, "onednn.conv", last, {{kF, {2, 5, 6, 4}}, w}, {{kF, {2, 3, 5, 6}}}},
      {true, "onednn.conv_input_grad", conv, {z, w}, {x}},
      {true, "onednn.conv_weight_grad", conv, {x, z}, {w}},
      {true, "onednn.max_pool", pool, {x}, {pooled}},
      {true, "onednn.avg_pool", with(pool, {{"count_pads", {1}}}), {x}, {pooled}},
      {true, "onednn.avg_pool_grad", pool, {pooled}, {x}},
      {false, "arg_top_k", {{"axis", {1}}, {"smallest", {1}}}, {{kF, {3, 7, 2}}}, {{kI, {3, 4, 2}}}},
      {false, "unique_positions", {{"axis", {1}}, {"sorted", {1}}}, {{kF, {3, 7}}}, {{kI, {7}}, {kI, {7}}, {kI, {7}}, {kI, {1}}}},
      {false, "nonzero_positions", {}, {{kF, {9}}}, {{kI, {9}}, {kI, {1}}}},
      {false, "non_max_suppression", {{"center_box", {1}}}, {{kF, {2, 5, 4}}, {kF, {2, 3, 5}}, {kI, {1}}, {kF, {1}}, {kF, {1}}}, {{kI, {30, 3}}, {kI, {1}}}},
      {false, "bit_cast", {{"to", {0}}}, {{kF, {2, 3}}}, {{DType::kI32, {2, 3}}}},
      {false, "linear_recurrence", {{"axis", {1}}, {"reverse", {1}}}, {{kF, {2, 3}}, {kF, {2, 3}}}, {{kF, {2, 3}}}},
      {false, "det", {}, {{kF, {2, 3, 3}}}, {{kF, {2}}}},
      {false, "cofactors", {}, {{kF, {2, 3, 3}}}, {{kF, {2, 3, 3}}}},
  };
  const std::vector<Call> of_devices = {
      {true, "cublaslt.matmul", product, {a, b}, {y}},
      {true, "cublaslt.matmul_bias", with(product, {{"relu", {1}}}), {a, b, {kF, {5}}}, {y}},
      {true, "cublaslt.matmul_bias_grad", {{"ta", {1}}, {"of", {1}}}, {{kF, {4, 3}}, {kF, {4, 5}}}, {{kF, {3, 5}}, {kF, {5}}}},
      {true, "cudnn.conv", conv, {x, w}, {z}},
      {true, "cudnn.conv_input_grad", conv, {z, w}, {x}},
      {true, "cudnn.conv_weight_grad", conv, {x, z}, {w}},
      {true, "cudnn.attention", attention, {query, key, key, {kF, {2, 1, 1, 5}}}, {query, statistics}},
      {true, "cudnn.attention_grad", attention, {query, key, key, query, query, statistics, {kF, {1, 1, 3, 5}}}, {query, key, key}},
      {true, "cudnn.recurrent", lstm, {steps, w4, r4, bias4, bias4, state, state}, {hidden, state, state}},
      {true, "cudnn.recurrent", gru, {steps, w3, r3, bias3, bias3, state}, {hidden, state}},
      {true, "cudnn.recurrent_grad", lstm, {steps, w4, r4, bias4, bias4, hidden, state, state, state, state}, {steps, w4, r4, bias4, bias4, state, state}},
      {true, "cudnn.recurrent_grad", gru, {steps, w3, r3, bias3, bias3, hidden, state, state}, {steps, w3, r3, bias3, bias3, state}},
  };
  calls.insert(calls.end(), of_devices.begin(), of_devices.end());
  return calls;
}

plan::Entry entry_of(const Call& call) {
  EntryBuilder builder("map");
  std::vector<std::int64_t> operands, results;
  for (const auto& [dtype, shape] : call.operands) operands.push_back(builder.arena(dtype, shape));
  for (const auto& [dtype, shape] : call.results) results.push_back(builder.arena(dtype, shape));
  if (call.of_library) builder.library({call.name, call.attributes, operands, {results.begin(), results.end()}});
  else builder.step({plan::HostStep{call.name, call.attributes, operands, results}, "a host function"});
  return builder.build();
}

/// A pooling and its gradient, which share a workspace.
plan::Entry pool_and_gradient() {
  EntryBuilder builder("map");
  const std::uint32_t x = builder.arena(kF, {2, 4, 5, 6}), y = builder.arena(kF, {2, 4, 3, 5}), workspace = builder.arena(DType::kU8, {2, 4, 3, 5}, true), dx = builder.arena(kF, {2, 4, 5, 6});
  const Attributes attributes = with(kWindow, {{"kernel", {3, 2}}});
  builder.library({"onednn.max_pool", attributes, {x}, {y, workspace}});
  builder.library({"onednn.max_pool_grad", attributes, {y, workspace}, {dx}});
  plan::Entry entry = builder.build();
  for (plan::Buffer& buffer : entry.buffers) buffer.first_step = 0, buffer.last_step = 1;
  return entry;
}

using Use = std::function<void(const std::string& what, const plan::Entry& entry)>;

/// `list` with one thing changed, in every way; `change` gets each.
template <typename Number>
void for_each_list(const std::vector<Number>& list, const std::string& what, const std::function<void(const std::string&, std::vector<Number>)>& change) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::vector<Number> dropped = list, swapped = list, doubled = list;
    dropped.erase(dropped.begin() + static_cast<std::ptrdiff_t>(i));
    change(what + " dropped", dropped);
    std::swap(swapped[i], swapped[(i + 1) % swapped.size()]);
    change(what + " swapped", swapped);
    doubled[i] = doubled[(i + 1) % doubled.size()];
    change(what + " twice", doubled);
    if constexpr (std::is_signed_v<Number>) {
      std::vector<Number> absent = list;
      absent[i] = -1;
      change(what + " absent", absent);
    }
  }
  std::vector<Number> longer = list;
  for (int i = 0; i < 5; ++i) {
    longer.push_back(list.empty() ? Number{} : list[0]);
    change(what + " more", longer);
  }
  change(what + " none", {});
}

void for_each_change_of_step(const plan::Entry& entry, std::size_t number, const Use& use) {
  const auto changed = [&](const std::string& what, const auto& change) {
    plan::Entry copy = entry;
    std::visit(
        [&](auto& step) {
          if constexpr (requires { step.attributes; }) change(step);
        },
        copy.steps[number].what);
    use(what, copy);
  };
  const auto visit = [&](const auto& step) {
    if constexpr (requires { step.attributes; }) {
      for_each_list<std::int64_t>(step.operands, "operand", [&](const std::string& what, const std::vector<std::int64_t>& list) { changed(what, [&](auto& to) { to.operands = list; }); });
      using Result = typename std::decay_t<decltype(step.results)>::value_type;
      for_each_list<Result>(step.results, "result", [&](const std::string& what, const std::vector<Result>& list) { changed(what, [&](auto& to) { to.results.assign(list.begin(), list.end()); }); });
      for (const auto& [name, values] : step.attributes) {
        changed(name + " missing", [&, name = name](auto& to) { to.attributes.erase(name); });
        changed(name + " without numbers", [&, name = name](auto& to) { to.attributes[name].clear(); });
        changed(name + " with one number more", [&, name = name](auto& to) { to.attributes[name].emplace_back(1); });
        for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{1} << 30, (std::int64_t{1} << 31) - 1, std::int64_t{1} << 40, kIntMost, -kIntMost - 1})
          for (std::size_t i = 0; i < values.size(); ++i)
            changed(name + " = " + std::to_string(number), [&, name = name](auto& to) { to.attributes[name][i] = number; });
      }
    }
  };
  std::visit(visit, entry.steps[number].what);
}

void for_each_change_of_buffer(const plan::Entry& entry, std::size_t number, const Use& use) {
  const auto changed = [&](const std::string& what, const auto& change) {
    plan::Entry copy = entry;
    change(copy.buffers[number]);
    use("buffer " + std::to_string(number) + " " + what, copy);
  };
  for (int dtype = 0; dtype < kDTypeCount; ++dtype)
    if (static_cast<DType>(dtype) != DType::kBool)  // memory that nobody has written holds numbers, and no bool
      changed("of type " + std::string(to_string(static_cast<DType>(dtype))), [&](plan::Buffer& buffer) { buffer.dtype = static_cast<DType>(dtype); });
  changed("of one axis more", [](plan::Buffer& buffer) { buffer.shape.insert(buffer.shape.begin(), 1); });
  changed("of one axis more at the end", [](plan::Buffer& buffer) { buffer.shape.emplace_back(2); });
  changed("of many axes", [](plan::Buffer& buffer) { buffer.shape.resize(30, 1); });
  changed("of no axes", [](plan::Buffer& buffer) { buffer.shape.clear(); });
  changed("laid out otherwise", [](plan::Buffer& buffer) { buffer.opaque = not buffer.opaque; });
  for (std::size_t axis = 0; axis < entry.buffers[number].shape.size(); ++axis) {
    changed("without an axis", [&](plan::Buffer& buffer) { buffer.shape.erase(buffer.shape.begin() + static_cast<std::ptrdiff_t>(axis)); });
    for (const std::int64_t extent : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{8}, std::int64_t{1000}, kFar, kIntMost})
      changed("with an axis of " + std::to_string(extent), [&](plan::Buffer& buffer) { buffer.shape[axis] = extent; });
  }
}

void for_each_change(const plan::Entry& entry, const Use& use) {
  for (std::size_t i = 0; i < entry.steps.size(); ++i) for_each_change_of_step(entry, i, use);
  for (std::size_t i = 0; i < entry.buffers.size(); ++i) for_each_change_of_buffer(entry, i, use);
}

struct Outcome {
  int ran = 0, refused = 0;
};

/// Fails on what is neither a run nor an Error.
void count(const std::string& what, Outcome& outcome, const std::function<void()>& run) {
  try {
    run();
    ++outcome.ran;
  } catch (const Error& error) {
    EXPECT_TRUE(error.exit_code() == 10 or error.exit_code() == 4 or error.exit_code() == 3 or error.exit_code() == 6) << what << "\n" << error.what();
    ++outcome.refused;
  } catch (const std::exception& error) { ADD_FAILURE() << what << "\n" << error.what(); }
}

void run_in_session(const plan::Entry& entry) {
  Session session(hand_plan({entry}), {.threads = 1});
  session.run(entry.name, {});
}

bool is_of_device(const Call& call) { return call.of_library and not find_library_row(call.name)->device_library.empty(); }

TEST(HostileCalls, EveryRowAndHostFunctionIsTried) {
  std::set<std::string, std::less<>> tried = {"onednn.max_pool_grad"};
  for (const Call& call : sound_calls()) tried.insert(call.name);
  for (const LibraryRow& row : library_rows()) EXPECT_TRUE(tried.contains(row.name)) << row.name;
#define HONE_TRIED(function) EXPECT_TRUE(tried.contains(#function)) << #function;
  HONE_HOST_FUNCTIONS(HONE_TRIED)
#undef HONE_TRIED
}

TEST(HostileCalls, RunOrAreRefused) {
  std::vector<plan::Entry> entries = {pool_and_gradient()};
  for (const Call& call : sound_calls())
    if (not is_of_device(call)) entries.push_back(entry_of(call));
  for (const plan::Entry& entry : entries) {
    const std::string name = entry.steps.front().origin;
    ASSERT_NO_THROW(run_in_session(entry));
    Outcome outcome;
    for_each_change(entry, [&](const std::string& what, const plan::Entry& changed) { count(what, outcome, [&] { run_in_session(changed); }); });
    EXPECT_GT(outcome.refused, 50) << name;
    EXPECT_GT(outcome.ran, 5) << name;
  }
}

/// What a device's row is held against, and how the host plays it, with memory of exactly its sizes.
void run_by_row(const plan::Entry& entry) {
  const auto& step = std::get<plan::LibraryStep>(entry.steps[0].what);
  plan::Plan plan = hand_plan({entry});
  plan::check(plan);
  check_calls(entry);
  const auto type = [&](std::int64_t number) {
    const plan::Buffer& buffer = entry.buffers[static_cast<std::size_t>(number)];
    TensorType type{buffer.dtype, evaluate(buffer.shape, {})};
    for (const std::int64_t extent : type.shape)
      if (extent < 0) throw Error(Code::kDataShape, "a negative size");
    (void)checked_element_count(type.shape);
    return type;
  };
  LibrarySpec spec;
  for (const auto& [name, values] : step.attributes) spec.attributes[name] = evaluate(values, {});
  for (const std::int64_t operand : step.operands) spec.operands.push_back(operand < 0 ? std::nullopt : std::optional(type(operand)));
  for (const std::uint32_t result : step.results) spec.results.push_back(type(result));
  const LibraryRow& row = row_of_plan(step.row, "");
  check_call(row, spec, entry.steps[0].origin);
  const std::unique_ptr<LibraryCall> call = row.make(spec);
  const auto bytes_of = [](const TensorType& of) { return static_cast<std::size_t>(checked_element_count(of.shape)) * size_of(of.dtype); };
  std::vector<HostMemory> memory;
  std::vector<const void*> operands;
  std::vector<void*> results;
  for (const auto& operand : spec.operands) operands.push_back(operand ? memory.emplace_back(bytes_of(*operand), "an operand").data() : nullptr);
  for (const TensorType& result : spec.results) results.push_back(memory.emplace_back(bytes_of(result), "a result").data());
  const HostMemory scratch(call->description().scratch_bytes, "scratch");
  call->execute(operands, results, scratch.data());
}

TEST(HostileCalls, OfDevicesRunOrAreRefused) {
  for (const Call& call : sound_calls()) {
    if (not is_of_device(call)) continue;
    const plan::Entry entry = entry_of(call);
    ASSERT_NO_THROW(run_by_row(entry)) << call.name;
    Outcome outcome;
    for_each_change(entry, [&](const std::string& what, const plan::Entry& changed) { count(call.name + ": " + what, outcome, [&] { run_by_row(changed); }); });
    EXPECT_GT(outcome.refused, 50) << call.name;
    EXPECT_GT(outcome.ran, 5) << call.name;
  }
}

/// Two convolutions, with windows of one element, and two layers, large enough to be worth a library's call.
plan::Plan compiled(const test::TempFolder& folder) {
  nn::Model model("big");
  nn::Value x = nn::relu(nn::conv(model.input("image", {4, 12, 12}), 8, 1));
  x = nn::max_pool(nn::relu(nn::conv(x, 8, 1)), 2);
  model.output("logits", nn::dense(nn::relu(nn::dense(nn::flatten(x), 64)), 3));
  save_model(model, folder / "big.onnx");
  return compile_model(folder / "big.onnx", read_recipe_text("[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"adam\"\n"), {.targets = {"cpu", "sim"}, .levels = {"native"}});
}

/// What a plan's file says is what is changed, and hashed anew. Kernels touch what their maker meant them to, so buffers stay as they are.
TEST(HostileCalls, OfACompiledPlanRunOrAreRefused) {
  const test::TempFolder folder;
  const plan::Plan whole = compiled(folder);
  const Tensor image = Tensor::zeros(kF, {8, 4, 12, 12}), target = Tensor::zeros(kI, {8}), rate = Tensor::scalar(0.1);
  const auto train = [&](const plan::Plan& plan, const std::string& device) {
    plan::save(plan, folder / "changed.hone");
    Session session(plan::load(folder / "changed.hone"), {.device = device, .threads = 1});
    session.run(plan::kTrainStep, Feeds{{"image", image}, {"target", target}, {"learning_rate", rate}});
  };
  for (std::size_t i = 0; i < whole.programs.size(); ++i) {
    plan::Plan plan = whole;
    plan.programs = {whole.programs[i]};
    std::erase_if(plan.programs[0].entries, [](const plan::Entry& entry) { return entry.name != plan::kTrainStep; });
    plan::Entry& entry = plan.programs[0].entries.at(0);
    ASSERT_NO_THROW(train(plan, plan.programs[0].target));
    const plan::Entry sound = entry;
    Outcome outcome;
    std::size_t changes = 0;
    for (std::size_t step = 0; step < sound.steps.size(); ++step)
      for_each_change_of_step(sound, step, [&](const std::string& what, const plan::Entry& changed) {
        if (changes++ % 7 != 0) return;  // each of them takes a session, with code and memory
        entry = changed;
        count(plan.programs[0].target + ": " + what, outcome, [&] { train(plan, plan.programs[0].target); });
      });
    EXPECT_GT(outcome.refused, 20) << plan.programs[0].target;
  }
}

TEST(HostileCalls, AreToldByWhatIsWrong) {
  const Call matmul = sound_calls()[0];
  const auto says = [&](const std::string& what, const std::function<void(plan::Entry&, plan::LibraryStep&)>& change) {
    plan::Entry entry = entry_of(matmul);
    change(entry, std::get<plan::LibraryStep>(entry.steps[0].what));
    expect_error(Code::kPlanFormat, what, [&] { run_in_session(entry); });
  };
  says("step \"a library call\": onednn.matmul cannot be called so: operand b is i64, and must be f32", [](plan::Entry& entry, plan::LibraryStep&) { entry.buffers[1].dtype = kI; });
  says("operand a is i64, and must be one of f32, bf16", [](plan::Entry& entry, plan::LibraryStep&) { entry.buffers[0].dtype = kI; });
  says("operand b has 1 axes, and must have 2 to 12", [](plan::Entry& entry, plan::LibraryStep&) { entry.buffers[1].shape = {4}; });
  says("operand b is missing", [](plan::Entry&, plan::LibraryStep& step) { step.operands[1] = -1; });
  says("there are 3 operands, and must be at most 2", [](plan::Entry&, plan::LibraryStep& step) { step.operands.push_back(0); });
  says("attribute tb is -1, and must be 0 to 1", [](plan::Entry&, plan::LibraryStep& step) { step.attributes["tb"] = {-1}; });
  says("attribute tb has 2 numbers, and must have 1", [](plan::Entry&, plan::LibraryStep& step) { step.attributes["tb"] = {1, 1}; });
  says("onednn.matmul(f32[2,3,4], f32[6,4]) -> f32[2,3,5] ta=[0] tb=[1] cannot be called so: b has 6 columns, and the result 5", [](plan::Entry& entry, plan::LibraryStep&) { entry.buffers[1].shape[0] = 6; });
  says("writes a result where it reads \"arena\"", [](plan::Entry&, plan::LibraryStep& step) { step.results[0] = 0; });
  says("result 0 is laid out by a library, and must not be", [](plan::Entry& entry, plan::LibraryStep&) { entry.buffers[2].opaque = true; });
}

TEST(HostileCalls, OfHostFunctionsAreToldByWhatIsWrong) {
  const std::vector<Call> calls = sound_calls();
  const Call& top_k = *std::ranges::find(calls, "arg_top_k", &Call::name);
  const auto says = [&](const std::string& what, const std::function<void(plan::Entry&, plan::HostStep&)>& change) {
    plan::Entry entry = entry_of(top_k);
    change(entry, std::get<plan::HostStep>(entry.steps[0].what));
    expect_error(Code::kPlanFormat, what, [&] { run_in_session(entry); });
  };
  says("the host function arg_top_k cannot be called so: result positions is f32, and must be one of i64", [](plan::Entry& entry, plan::HostStep&) { entry.buffers[1].dtype = kF; });
  says("operand x is missing", [](plan::Entry&, plan::HostStep& step) { step.operands.clear(); });
  says("axis 5 of 3", [](plan::Entry&, plan::HostStep& step) { step.attributes["axis"] = {5}; });
  says("positions is [3,4,9], and must be [3,4,2]", [](plan::Entry& entry, plan::HostStep&) { entry.buffers[1].shape[2] = 9; });
}

TEST(HostileCalls, AWorkspaceHasTheBytesThatItsCallGaveIt) {
  plan::Entry entry = pool_and_gradient();
  std::swap(entry.steps[0], entry.steps[1]);
  expect_error(Code::kPlanFormat, "bytes of a workspace of 0", [&] { run_in_session(entry); });
}

}  // namespace
}  // namespace hone
