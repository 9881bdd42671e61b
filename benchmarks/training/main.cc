// hone-bench: trains one workload of the comparison and says how long a step takes. The model comes from the C++ builder; hone-compile makes the plan and hone-run
// times it, each in a process of its own, so that compiling counts neither as time nor as memory of the training.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/diag.h"
#include "base/files.h"
#include "base/text.h"
#include "benchmarks/training/child.h"
#include "benchmarks/training/workloads.h"
#include "formats/npy.h"
#include "frontend/onnx/export.h"
#include "tools/command_line.h"

namespace hone::benchmarks {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string workload, keep, precision = "f32";
  std::int64_t threads = 1;
  double seconds = 5, warm_up = 1;
  bool json = false, list = false;
};

/// Where model, recipe, data and plan lie; goes with all that is in it unless it is to be kept.
class WorkFolder {
 public:
  explicit WorkFolder(const std::string& keep) : path_(keep), is_kept_(not keep.empty()) {
    if (is_kept_) make_folders(path_);
    else make_temporary();
  }
  ~WorkFolder() {
    std::error_code ignored;
    if (not is_kept_) std::filesystem::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  std::string operator/(std::string_view name) const { return fmt::format("{}/{}", path_, name); }

 private:
  void make_temporary() {
    std::string name = std::filesystem::temp_directory_path() / "hone-bench-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw Error(Code::kFileWrite, fmt::format("no temporary folder {}", quoted(name)), {}, {"name one that can be written: TMPDIR=FOLDER"});
    path_ = name;
  }

  std::string path_;
  bool is_kept_;
};

void write_workload(const Workload& workload, const std::string& precision, const WorkFolder& folder) {
  nn::Model model{std::string(workload.name)};
  workload.build(model);
  onnx::save(model.graph(), folder / "model.onnx");
  write_file_atomically(folder / "train.toml", workload.recipe(precision));
  if (workload.draw == nullptr) return;
  const Samples samples = workload.draw(workload.batches * workload.batch);
  write_npy(folder / "x.npy", samples.x);
  write_npy(folder / "y.npy", samples.y);
}

/// What hone-run measured, and how long hone-compile took.
Json measure(const Workload& workload, const Arguments& arguments) {
  const WorkFolder folder(arguments.keep);
  write_workload(workload, arguments.precision, folder);
  if (workload.draw == nullptr) bind_to_cores(arguments.threads);
  const ChildRun compiling = run_beside({"hone-compile", folder / "model.onnx", "-r", folder / "train.toml", "-o", folder / "plan.hone"});
  if (workload.draw == nullptr) return {{"workload", workload.name}, {"threads", arguments.threads}, {"compile_s", compiling.seconds}};
  bind_to_cores(arguments.threads);
  const ChildRun running =
      run_beside({"hone-run", "bench", folder / "plan.hone", "--data", fmt::format("x={},target={}", folder / "x.npy", folder / "y.npy"), "--threads",
                  std::to_string(arguments.threads), "--seconds", fmt::format("{}", arguments.seconds), "--warmup", fmt::format("{}", arguments.warm_up), "--workload",
                  std::string(workload.name), "--json"});
  Json result = Json::parse(running.out);
  result["compile_s"] = compiling.seconds;
  return result;
}

/// With a blank behind each colon and comma, as the other programs of the comparison write it: its scripts look for that.
std::string on_one_line(const Json& result) {
  std::string line;
  for (const auto& [key, value] : result.items()) line += fmt::format("{}\"{}\": {}", line.empty() ? "" : ", ", key, value.dump());
  return "{" + line + "}\n";
}

std::string on_many_lines(const Json& result) {
  std::string lines;
  for (const auto& [key, value] : result.items()) lines += fmt::format("{:20} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  return lines;
}

int run(const Arguments& arguments) {
  if (arguments.list) {
    for (const Workload& workload : workloads()) print_data(fmt::format("{:17} batch {:4}  {}\n", workload.name, workload.batch, workload.doc));
    return 0;
  }
  if (arguments.threads < 1) throw Error(Code::kUsage, "--threads counts threads: 1 or more");
  const Json result = measure(find_workload(arguments.workload), arguments);
  print_data(arguments.json ? on_one_line(result) : on_many_lines(result));
  return 0;
}

Tool make_tool(Arguments& a) {
  const std::vector<Flag> flags = {{"--workload", "W", "what to train, --list names all; resnet50 and gpt2 are compiled only", &a.workload},
                                   {"--threads", "T", "threads, each on a core of its own", &a.threads},
                                   {"--seconds", "S", "how long to time", &a.seconds},
                                   {"--warmup", "S", "how long to train before", &a.warm_up},
                                   {"--precision", "P", "the recipe's train.precision, and the variant that the result names", &a.precision},
                                   {"--keep", "FOLDER", "keep model.onnx, train.toml, x.npy, y.npy and plan.hone there, for a closer look", &a.keep},
                                   {"--list", "", "the workloads", &a.list},
                                   {"--json", "", "the result as one JSON line", &a.json}};
  return {.name = "hone-bench", .doc = "Trains one workload of the comparison and says how long a step takes.", .commands = {{"", "", flags, [&a] { return run(a); }}}};
}

}  // namespace
}  // namespace hone::benchmarks

int main(int argc, char** argv) {
  hone::benchmarks::Arguments arguments;
  return hone::run_tool(hone::benchmarks::make_tool(arguments), argc, argv);
}
