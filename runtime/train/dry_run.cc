#include "runtime/train/dry_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/diag.h"
#include "base/files.h"
#include "runtime/train/adapter_files.h"
#include "runtime/train/checkpoint.h"
#include "runtime/train/weights.h"

namespace hone {

namespace {

void keep_all(Replicas& replicas, const std::string& path, std::int64_t steps) {
  replicas.gather_states(true);
  write_checkpoint(path, replicas.session(), {.step = steps});
}

}  // namespace

std::string DryRun::made_in(std::string folder, int process) {
  if (folder.empty()) folder = ".";
  while (not file_exists(folder)) folder = folder_of(folder);  // a run makes its folder; a dry run leaves none
  std::string path = fmt::format("{}/.hone-dry-run-{}-{}", folder, getpid(), process);
  make_folders(path);
  return path;
}

DryRun::DryRun(const std::string& folder, Replicas& replicas) : replicas_(replicas), scratch_{made_in(folder, replicas.process())} { keep_all(replicas_, scratch_.path + "/before", 0); }

DryRun::Folder::~Folder() {
  try {
    remove_tree(path);
  } catch (const Error& error) { std::fputs((std::string(error.what()) + "\n").c_str(), stderr); }
}

void DryRun::finish(const Recipe& recipe, std::span<const std::byte> onnx_model, std::int64_t steps) {
  const std::string& folder = scratch_.path;
  keep_all(replicas_, folder + "/checkpoint", steps);
  (void)load_checkpoint(folder + "/checkpoint", replicas_.session());
  save_trained(recipe, onnx_model, replicas_.session(), folder + (exports_adapters_alone(recipe) ? "/trained.safetensors" : "/trained.onnx"));
  (void)load_checkpoint(folder + "/before", replicas_.session());
}

}  // namespace hone
