// Questions about nodes and files that have no answer: hone-compile --why NODE, hone-dump diff.
#include <gtest/gtest.h>

#include "tests/errors/error_case.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

const ErrorCase kWhy[] = {
    {"MisspelledNode", "hone-compile mlp.onnx --why dense_2", 2, {"--why \"dense_2\"", "no such node", "did you mean \"dense", "--emit imported"}, write_mlp},
    {"NoModel", "hone-compile --why", 2, {"MODEL is required", "hone-compile --help"}},
};
HONE_ERROR_CASES(WhyErrors, kWhy);

const ErrorCase kDiff[] = {
    {"NothingInCommon", "hone-dump diff a.hir run.safetensors", 2, {"nothing in common", "models, graphs and plans"}, [](const TempFolder& folder) {
       folder.write("a.hir", "graph g(input %x: f32[2]) {\n  output \"y\" %x\n}\n");
       folder.write("run.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10));
     }},
    {"RecipeAndModel", "hone-dump diff train.toml mlp.onnx", 2, {"a recipe is compared with another recipe"}, write_mlp},
    {"OneFile", "hone-dump diff mlp.onnx", 2, {"B is required"}, write_mlp},
    {"ThreeFiles", "hone-dump diff mlp.onnx mlp.onnx mlp.onnx", 2, {"one argument too many"}, write_mlp},
    {"AsAPicture", "hone-dump diff mlp.onnx mlp.onnx --as svg", 2, {"\"svg\"", "text or json"}, write_mlp},
    {"MissingFile", "hone-dump diff mlp.onnx mpl.onnx", 7, {"HN-0401", "did you mean \"mlp.onnx\"?"}, write_mlp},
    {"FlagOfTheOtherCommand", "hone-dump diff mlp.onnx mlp.onnx --summary", 2, {"hone-dump diff has no flag \"--summary\""}, write_mlp},
};
HONE_ERROR_CASES(DiffErrors, kDiff);

}  // namespace
}  // namespace hone::test
