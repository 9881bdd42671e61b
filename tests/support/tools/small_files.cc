#include "tests/support/tools/small_files.h"

#include <fmt/format.h>

#include "base/philox.h"
#include "formats/npy.h"
#include "frontend/builder.h"
#include "frontend/onnx/export.h"
#include "tests/support/tools/run_tool.h"

namespace hone::test {

namespace {

constexpr std::int64_t kSamples = 10, kImages = 50;

std::vector<std::int64_t> in_turn(std::int64_t count, std::int64_t of) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(i % of);
  return values;
}

Tensor drawn(std::vector<std::int64_t> shape, float spread) {
  return Tensor::make(DType::kF32, std::move(shape), [&](std::span<std::byte> bytes) {
    auto* values = reinterpret_cast<float*>(bytes.data());
    for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) values[i] = spread * static_cast<float>(philox_uniform(7, i, 0).first - 0.5);
  });
}

/// Noise with a bright row where the class says.
Tensor striped_images(std::int64_t count) {
  const Tensor noise = drawn({count, 1, 8, 8}, 0.2f);
  return Tensor::make(DType::kF32, noise.shape(), [&](std::span<std::byte> bytes) {
    auto* pixels = reinterpret_cast<float*>(bytes.data());
    for (std::int64_t i = 0; i < noise.element_count(); ++i) {
      const std::int64_t image = i / 64, row = i / 8 % 8;
      pixels[i] = noise.data<float>()[static_cast<std::size_t>(i)] + (row == 1 + 2 * (image % 3) ? 1.0f : 0.0f);
    }
  });
}

/// Compiles NAME.onnx with train.toml to NAME.hone. The plan is kept beside the tools until they are built anew: most tests of the tools look at what is done
/// with one of these plans, each is a process of its own, and compiling takes longer than all else that it does.
void write_plan(const TempFolder& folder, const std::string& name) {
  namespace fs = std::filesystem;
  const fs::path tools(HONE_BIN_DIR), kept_in = tools.parent_path() / "small_plans";
  const std::size_t source = std::hash<std::string>()(folder.read(name + ".onnx") + folder.read("train.toml"));
  const fs::path plan = folder / (name + ".hone"), kept = kept_in / fmt::format("{}-{:016x}.hone", name, source);
  std::error_code missing;
  if (fs::last_write_time(kept, missing) > fs::last_write_time(tools / "hone-compile")) {
    fs::copy_file(kept, plan, fs::copy_options::overwrite_existing);
    return;
  }
  if (run_well(folder.path(), fmt::format("hone-compile {0}.onnx -r train.toml -o {0}.hone", name)).exit != 0) return;
  fs::create_directories(kept_in);
  const fs::path whole = kept_in / fs::path(folder.path()).filename();  // another process may do the same
  fs::copy_file(plan, whole);
  fs::rename(whole, kept);
}

}  // namespace

void write_recipe(const TempFolder& folder) {
  folder.write("train.toml",
               "[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"adam\"\nlearning_rate = 0.01\n"
               "[metrics]\nlist = [\"accuracy\"]\n[data]\nbatch_size = 4\n[train]\nepochs = 1\n");
}

void write_demanding_recipe(const TempFolder& folder, int batch_size, const std::string& train, const std::string& model) {
  folder.write("train.toml", fmt::format(R"({}
[model.dropout]
after = ["*"]
rate = 0.2
[loss]
kind = "softmax_cross_entropy"
[optimizer]
kind = "adam"
learning_rate = 0.01
[schedule]
kind = "cosine"
warmup_steps = 5
[metrics]
list = ["accuracy"]
[data]
batch_size = {}
shuffle_buffer = 40
[train]
epochs = 5
{}
)", model, batch_size, train));
}

void write_floats(const TempFolder& folder, const std::string& name, std::vector<std::int64_t> shape) { write_npy(folder / name, drawn(std::move(shape), 2)); }

void write_integers(const TempFolder& folder, const std::string& name, std::vector<std::int64_t> values) {
  write_npy(folder / name, Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, std::span<const std::int64_t>(values)));
}

void write_classes(const TempFolder& folder, const std::string& name, std::int64_t count, std::int64_t classes) {
  write_integers(folder, name, in_turn(count, classes));
}

void write_mlp(const TempFolder& folder) {
  nn::Model model("mlp");
  const nn::Value hidden = nn::relu(nn::dense(model.input("x", {4}), 5));
  model.output("logits", nn::dense(hidden, 3));
  onnx::save(model.graph(), folder / "mlp.onnx");
  write_recipe(folder);
  write_floats(folder, "x.npy", {kSamples, 4});
  write_classes(folder, "y.npy", kSamples, 3);
}

void write_mlp_plan(const TempFolder& folder) {
  write_mlp(folder);
  write_plan(folder, "mlp");
}

void write_ids_plan(const TempFolder& folder) {
  nn::Model model("ids");
  const nn::Value words = nn::embedding(model.input("ids", {12}, DType::kI32), 50, 6);
  const nn::Value found = nn::relu(nn::conv(nn::permute(words, {2, 1}), 8, 3));
  model.output("logits", nn::dense(nn::global_average_pool(found), 4));
  onnx::save(model.graph(), folder / "ids.onnx");
  write_recipe(folder);
  write_npy(folder / "ids.npy", Tensor::of<std::int64_t>({kSamples, 12}, std::span<const std::int64_t>(in_turn(kSamples * 12, 50))));
  write_classes(folder, "y.npy", kSamples, 4);
  write_plan(folder, "ids");
}

void write_conv_net(const TempFolder& folder) {
  nn::Model model("conv");
  nn::Value x = nn::conv(model.input("image", {1, 8, 8}), 4, 3, {.same = true});
  x = nn::max_pool(nn::relu(nn::batch_norm(x)), 5, {.stride = 1});  // windows that overlap: a call of the library's
  model.output("logits", nn::dense(nn::flatten(x), 3));
  onnx::save(model.graph(), folder / "conv.onnx");
  write_recipe(folder);
  write_npy(folder / "x.npy", striped_images(kImages));
  write_classes(folder, "y.npy", kImages, 3);
}

void write_conv_plan(const TempFolder& folder) {
  write_conv_net(folder);
  write_plan(folder, "conv");
}

}  // namespace hone::test
