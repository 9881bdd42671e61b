#include "tests/inspect/hostile_model.h"

#include "backends/compile.h"
#include "frontend/recipe_toml.h"
#include "tests/frontend/test_model.h"
#include "tests/support/hostile_names.h"

namespace hone::test {

namespace {

onnx::ModelProto hostile_model() {
  const std::vector<std::string> names = hostile_names();
  TestModel model;
  model.input("in" + names[4], {std::string("N"), std::int64_t{3}});
  std::string before = "in" + names[4];
  for (std::size_t i = 0; i < names.size(); ++i) {
    model.initializer(names[i], wavy({3}));
    const std::string result = "r" + names[names.size() - 1 - i];
    model.node(i % 2 == 0 ? "Mul" : "Add", {before, names[i]}, {result}).named(names[i]);
    before = result;
  }
  model.output(before);
  return model.proto;
}

}  // namespace

Hostile::Hostile() {
  folder.write("hostile.onnx", hostile_model().SerializeAsString());
  model = load_contents(folder / "hostile.onnx");
  RecipeSource source;
  for (const char* setting : {"loss.kind=mse", "optimizer.kind=sgd", "optimizer.momentum=0.9"}) add_override(source, setting);
  const Recipe recipe = resolve(source);
  Compiled compiled = compile({model.model->graph, model.model->model, "hostile\"</script>\n.onnx"}, recipe, {.levels = {.cpu = {"x86-64-v3"}}});
  plan::save(compiled.plan, folder / "hostile.hone");
  plan = load_contents(folder / "hostile.hone");
}

}  // namespace hone::test
