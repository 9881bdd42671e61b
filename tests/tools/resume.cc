#include "tests/tools/resume.h"

#include <fmt/format.h>

namespace hone::test {

ResumedRun::ResumedRun() {
  write_mlp(folder);
  write_demanding_recipe(folder, 5, "gradient_accumulation_steps = 2");
  write_floats(folder, "x.npy", {97, 4});  // the last group of an epoch is smaller
  write_classes(folder, "y.npy", 97, 3);
  run_well(folder.path(), "hone-compile mlp.onnx -r train.toml -o mlp.hone");
  run_well(folder.path(), command("whole") + " --keep 100");
}

std::string ResumedRun::command(const std::string& name) const {
  return fmt::format("hone-run train mlp.hone --train x=x.npy,y=y.npy --valid x=x.npy[0:20],y=y.npy[0:20] --run-dir {0} --out {0}.onnx --save-steps 1 --quiet", name);
}

}  // namespace hone::test
