#include "tests/tools/resume.h"

#include <fmt/format.h>

namespace hone::test {

namespace {

constexpr const char* kRecipe = R"([model.dropout]
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
batch_size = 5
shuffle_buffer = 40
[train]
epochs = 5
gradient_accumulation_steps = 2
)";

}  // namespace

ResumedRun::ResumedRun() {
  write_mlp(folder);
  folder.write("train.toml", kRecipe);
  write_floats(folder, "x.npy", {97, 4});  // the last group of an epoch is smaller
  write_classes(folder, "y.npy", 97, 3);
  run_well(folder.path(), "hone-compile mlp.onnx -r train.toml -o mlp.hone");
  run_well(folder.path(), command("whole") + " --keep 100");
}

std::string ResumedRun::command(const std::string& name) const {
  return fmt::format("hone-run train mlp.hone --train x=x.npy,y=y.npy --valid x=x.npy[0:20],y=y.npy[0:20] --run-dir {0} --out {0}.onnx --save-steps 1 --quiet", name);
}

}  // namespace hone::test
