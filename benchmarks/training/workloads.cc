#include "benchmarks/training/workloads.h"

#include <fmt/format.h>

#include "base/diag.h"
#include "base/text.h"
#include "benchmarks/training/models.h"

namespace hone::benchmarks {

namespace {

constexpr std::string_view kClasses = "kind = \"softmax_cross_entropy\"", kSquares = "kind = \"mse\"";
constexpr std::string_view kAdam = "kind = \"adam\"\nlearning_rate = 1e-3";
constexpr std::string_view kNadam = "kind = \"nadam\"\nlearning_rate = 1e-3";
constexpr std::string_view kAdamW =
    "kind = \"adamw\"\nlearning_rate = 1e-3\nbeta1 = 0.9\nbeta2 = 0.99\nweight_decay = 0.1\nexclude_from_weight_decay = [\"*/gamma\"]";

constexpr Words kReuters = {.vocabulary = 20000, .length = 300, .size = 7, .classes = 46}, kTexts = {.vocabulary = 20000, .length = 100, .size = 64, .classes = 8};
constexpr Gpt kNano = {.layers = 4, .heads = 4, .width = 128, .context = 64, .vocabulary = 65};
constexpr Gpt kMid = {.layers = 6, .heads = 6, .width = 384, .context = 256, .vocabulary = 65};
constexpr Gpt kGpt2 = {.layers = 12, .heads = 12, .width = 768, .context = 1024, .vocabulary = 50257};

constexpr Workload kRows[] = {
    {.name = "fashion_mlp", .doc = "28x28, dense 256, dense 10", .batch = 64, .batches = 64, .loss = kClasses, .optimizer = kAdam,
     .build = [](nn::Model& m) { build_mlp(m, {28, 28}, {256, 10}); },
     .draw = [](std::int64_t count) { return draw_images(count, {28, 28}, 10); }},
    {.name = "fashion_mlp_b128", .doc = "the same with batches of 128", .batch = 128, .batches = 64, .loss = kClasses, .optimizer = kAdam,
     .build = [](nn::Model& m) { build_mlp(m, {28, 28}, {256, 10}); },
     .draw = [](std::int64_t count) { return draw_images(count, {28, 28}, 10); }},
    {.name = "reuters_cnn", .doc = "embedding and two one-dimensional convolutions over 300 words", .batch = 32, .batches = 64, .loss = kClasses, .optimizer = kNadam,
     .build = [](nn::Model& m) { build_text_cnn(m, kReuters); },
     .draw = [](std::int64_t count) { return draw_texts(count, kReuters.length, kReuters.vocabulary, kReuters.classes); }},
    {.name = "mlp_512", .doc = "784-512-512-10", .batch = 128, .batches = 64, .loss = kClasses, .optimizer = kAdam,
     .build = [](nn::Model& m) { build_mlp(m, {784}, {512, 512, 10}); },
     .draw = [](std::int64_t count) { return draw_images(count, {784}, 10); }},
    {.name = "mnist_cnn", .doc = "two 3x3 convolutions, two dense layers", .batch = 128, .batches = 64, .loss = kClasses, .optimizer = kAdam,
     .build = build_mnist_cnn,
     .draw = [](std::int64_t count) { return draw_images(count, {1, 28, 28}, 10); }},
    {.name = "resnet20", .doc = "ResNet-20 for 32x32 images", .batch = 64, .batches = 16, .loss = kClasses,
     .optimizer = "kind = \"sgd\"\nlearning_rate = 0.05\nmomentum = 0.9\nweight_decay = 1e-4",
     .build = [](nn::Model& m) { build_resnet(m, {.extent = 32, .classes = 10, .widths = {16, 32, 64}, .depth = 3, .large_stem = false}); },
     .draw = [](std::int64_t count) { return draw_images(count, {3, 32, 32}, 10); }},
    {.name = "resnet18_64", .doc = "ResNet-18 for 64x64 images of 100 classes", .batch = 32, .batches = 8, .loss = kClasses,
     .optimizer = "kind = \"sgd\"\nlearning_rate = 0.05\nmomentum = 0.9",
     .build = [](nn::Model& m) { build_resnet(m, {.extent = 64, .classes = 100, .widths = {64, 128, 256, 512}, .depth = 2, .large_stem = true}); },
     .draw = [](std::int64_t count) { return draw_images(count, {3, 64, 64}, 100); }},
    {.name = "nanogpt_cpu", .doc = "GPT: 4 layers, 4 heads, width 128, 64 positions", .batch = 12, .batches = 32, .loss = kClasses, .optimizer = kAdamW,
     .build = [](nn::Model& m) { build_gpt(m, kNano); },
     .draw = [](std::int64_t count) { return draw_chains(count, kNano.context, kNano.vocabulary); }},
    {.name = "gpt_mid", .doc = "GPT: 6 layers, 6 heads, width 384, 256 positions", .batch = 8, .batches = 32, .loss = kClasses, .optimizer = kAdamW,
     .build = [](nn::Model& m) { build_gpt(m, kMid); },
     .draw = [](std::int64_t count) { return draw_chains(count, kMid.context, kMid.vocabulary); }},
    {.name = "lstm_text", .doc = "embedding and an LSTM of 128 over 100 words", .batch = 32, .batches = 64, .loss = kClasses, .optimizer = kAdam,
     .build = [](nn::Model& m) { build_text_lstm(m, kTexts, 128); },
     .draw = [](std::int64_t count) { return draw_texts(count, kTexts.length, kTexts.vocabulary, kTexts.classes); }},
    {.name = "tiny_mlp", .doc = "8-32-32-1: what a step costs when there is nothing to compute", .batch = 16, .batches = 64, .loss = kSquares,
     .optimizer = "kind = \"sgd\"\nlearning_rate = 0.01",
     .build = [](nn::Model& m) { build_mlp(m, {8}, {32, 32, 1}); },
     .draw = [](std::int64_t count) { return draw_sums(count, 8); }},
};

constexpr Workload kCompiled[] = {
    {.name = "resnet50", .doc = "ResNet-50 for 224x224 images of 1000 classes", .batch = 8, .batches = 0, .loss = kClasses,
     .optimizer = "kind = \"sgd\"\nlearning_rate = 0.05\nmomentum = 0.9\nweight_decay = 1e-4",
     .build = [](nn::Model& m) { build_bottleneck_resnet(m, 224, 1000, {3, 4, 6, 3}); }, .draw = nullptr},
    {.name = "gpt2", .doc = "GPT-2: 12 layers, 12 heads, width 768, 1024 positions, 50257 words", .batch = 1, .batches = 0, .loss = kClasses, .optimizer = kAdamW,
     .build = [](nn::Model& m) { build_gpt(m, kGpt2); }, .draw = nullptr},
};

}  // namespace

std::string Workload::recipe(std::string_view precision) const {
  return fmt::format("[loss]\n{}\n\n[optimizer]\n{}\n\n[data]\nbatch_size = {}\n\n[train]\nprecision = \"{}\"\n", loss, optimizer, batch, precision);
}

std::span<const Workload> workloads() { return kRows; }

std::span<const Workload> compiled_workloads() { return kCompiled; }

const Workload& find_workload(std::string_view name) {
  std::vector<std::string> names;
  for (const std::span<const Workload> rows : {workloads(), compiled_workloads()})
    for (const Workload& workload : rows) {
      if (workload.name == name) return workload;
      names.emplace_back(workload.name);
    }
  std::vector<std::string> notes;
  if (const auto near = nearest(name, names)) notes.push_back(fmt::format("did you mean \"{}\"?", *near));
  notes.push_back("the workloads: " + quoted_list(names));
  throw Error(Code::kUsage, fmt::format("--workload {}: there is none of that name", quoted(name)), {}, std::move(notes));
}

}  // namespace hone::benchmarks
