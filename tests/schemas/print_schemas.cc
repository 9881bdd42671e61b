// Prints the operators of ONNX's default domain as the installed ONNX library knows them, one a line: NAME SINCE_VERSION live|deprecated.
// A program of its own, so that the library's protobuf messages never meet ours.
#include <onnx/defs/schema.h>

#include <iostream>
#include <set>

int main() {
  constexpr int kOpset = 17;
  std::set<std::string> names;
  for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history())
    if (schema.domain() == onnx::ONNX_DOMAIN) names.insert(schema.Name());
  for (const std::string& name : names)
    if (const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(name, kOpset, onnx::ONNX_DOMAIN))
      std::cout << name << ' ' << schema->SinceVersion() << ' ' << (schema->Deprecated() ? "deprecated" : "live") << '\n';
}
