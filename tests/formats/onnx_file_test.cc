#include "formats/onnx_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <queue>
#include <sstream>

#include "base/file_system.h"
#include "base/files.h"
#include "formats/onnx_wire.h"
#include "tests/support/bytes.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using namespace std::string_literals;
using test::bytes_of;
using test::expect_error;
using test::TempFolder;
using Names = std::vector<std::string>;

onnx::ModelProto parse_model_text(const std::string& text) { return parse_model(bytes_of(text), "m.onnx"); }

/// One node and `weights` initializers of `elements` floats each, the i-th filled with i.
onnx::ModelProto small_model(int weights = 2, std::int64_t elements = 4) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::NodeProto* node = model.mutable_graph()->add_node();
  node->set_op_type("Relu");
  node->add_input("x");
  node->add_output("y");
  for (int i = 0; i < weights; ++i) {
    onnx::TensorProto* weight = model.mutable_graph()->add_initializer();
    weight->set_name("w" + std::to_string(i));
    store_tensor(weight, Tensor::of<float>({elements}, std::vector<float>(static_cast<std::size_t>(elements), static_cast<float>(i))));
  }
  return model;
}

void expect_weights(const std::string& path, int weights = 2) {
  const onnx::ModelProto model = load_model(path);
  ASSERT_EQ(model.graph().initializer_size(), weights);
  for (int i = 0; i < weights; ++i) EXPECT_EQ(tensor_of(model.graph().initializer(i), folder_of(path), {}).at(3), i);
}

/// Everything into the data file.
SaveModelOptions external_options(const std::string& folder) { return {.source_folder = folder, .longest_file = 0, .shortest_external = 1}; }

TEST(OnnxFile, RoundTrip) {
  const TempFolder folder;
  save_model(small_model(), folder / "m.onnx");
  EXPECT_EQ(folder.read("m.onnx"), small_model().SerializeAsString());
  expect_weights(folder / "m.onnx");
}

TEST(OnnxFile, KeepsWhatItDoesNotKnow) {
  std::string text = small_model().SerializeAsString();
  text +=
      "\xd2\x01\x03"
      "abc"s;  // field 26, configuration
  text +=
      "\x3a\x0a\x0a\x08\x52\x06"
      "future"s;            // graph: node with field 10
  text += "\x98\x06\x07"s;  // field 99, a number
  const onnx::ModelProto model = parse_model_text(text);
  EXPECT_EQ(model.graph().node_size(), 2);
  const std::string back = model.SerializeAsString();
  for (const std::string& part : {"\xd2\x01\x03"
                                  "abc"s,
                                  "\x52\x06"
                                  "future"s,
                                  "\x98\x06\x07"s})
    EXPECT_NE(back.find(part), std::string::npos);
  EXPECT_EQ(parse_model_text(back).SerializeAsString(), back);
}

TEST(OnnxFile, KeepsDefaultsThatWereWritten) {
  onnx::ModelProto model = small_model();
  onnx::AttributeProto* attribute = model.mutable_graph()->mutable_node(0)->add_attribute();
  attribute->set_i(0);
  EXPECT_TRUE(parse_model_text(model.SerializeAsString()).graph().node(0).attribute(0).has_i());
}

TEST(OnnxFile, SaysWhatItIsInstead) {
  expect_error(Code::kNotOnnx, "it is empty", [] { parse_model_text(""); });
  expect_error(Code::kNotOnnx, "it is text", [] { parse_model_text("import torch\n"); });
  expect_error(Code::kNotOnnx, "JSON", [] { parse_model_text("{\"a\": 1}"); });
  expect_error(Code::kNotOnnx, "HTML", [] { parse_model_text("<!DOCTYPE html>"); });
  expect_error(Code::kNotOnnx, "a model in ONNX's text syntax", [] { parse_model_text("<\n   ir_version: 10,\n   opset_import: [\"\" : 21]\n>\n"); });
  expect_error(Code::kNotOnnx, "onnx.parser.parse_model", [] { parse_model_text("<ir_version: 10>"); });
  expect_error(Code::kNotOnnx, "git lfs pull", [] { parse_model_text("version https://git-lfs.github.com/spec/v1\n"); });
  expect_error(Code::kNotOnnx, "torch.onnx.export", [] { parse_model_text("PK\x03\x04 and more"); });
  expect_error(Code::kNotOnnx, "HDF5", [] { parse_model_text("\x89HDF\r\n\x1a\n and more"); });
  expect_error(Code::kNotOnnx, "TensorFlow Lite", [] { parse_model_text("\x1c\0\0\0TFL3 and more"s); });
  expect_error(Code::kNotOnnx, "safetensors", [] { parse_model_text("\x02\0\0\0\0\0\0\0{} "s); });
  expect_error(Code::kNotOnnx, "gzip", [] { parse_model_text("\x1f\x8b\x08 and more"s); });
  expect_error(Code::kNotOnnx, "zero bytes", [] { parse_model_text(std::string(100, '\0')); });
  expect_error(Code::kNotOnnx, "it has no graph", [] { parse_model_text("\x08\x08"); });
  expect_error(Code::kNotOnnx, "a graph without nodes", [] { parse_model_text("\x08\x08\x3a\x00"s); });
}

TEST(OnnxFile, SaysWhereItIsDamaged) {
  const std::string whole = small_model().SerializeAsString();
  const std::size_t graph_end = whole.size() - small_model().opset_import(0).ByteSizeLong() - 2;  // behind it: only the opset
  expect_error(Code::kNotOnnx, "it ends inside graph.initializer, at least 10 bytes too early", [&] { parse_model_text(whole.substr(0, graph_end - 10)); });
  expect_error(Code::kNotOnnx, "it ends inside graph.node, at least", [&] { parse_model_text(whole.substr(0, whole.find("Relu") + 3)); });
  expect_error(Code::kNotOnnx, "a length does not fit", [] { parse_model_text("\x08\x08\x3a\x04\x0a\x50\x22\x01" + std::string(100, 'x')); });
  expect_error(Code::kNotOnnx, "no field of kind 7", [] { parse_model_text("\x08\x08\x0f"); });
  expect_error(Code::kNotOnnx, "no number", [] { parse_model_text("\x08" + std::string(20, '\xff')); });
}

TEST(OnnxFile, EveryTruncationIsAnErrorOrAModel) {
  const std::string whole = small_model().SerializeAsString();
  int models = 0;  // cut between two fields of the model itself, behind the graph: nobody can tell
  for (std::size_t size = 0; size < whole.size(); ++size) {
    try {
      EXPECT_EQ(parse_model_text(whole.substr(0, size)).graph().initializer_size(), 2) << size;
      ++models;
    } catch (const Error&) {}
  }
  EXPECT_EQ(models, 1);
}

TEST(OnnxFile, SurvivesDamage) {
  onnx::ModelProto model = small_model();
  model.mutable_graph()->add_input()->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_param("N");
  model.mutable_graph()->mutable_node(0)->add_attribute()->mutable_g()->add_node()->add_input("x");
  const std::string whole = model.SerializeAsString();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(value);
      try {
        onnx::ModelProto read = parse_model_text(damaged);
        for (const onnx::TensorProto* tensor : all_tensors(read)) tensor_of(*tensor, "/nowhere", {});
      } catch (const Error&) {}
    }
  }
}

/// `content` as field `number` of a message.
std::string field(int number, const std::string& content) {
  std::string text;
  const auto put = [&](std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
    text += static_cast<char>(value);
  };
  put(static_cast<std::uint64_t>(number) << 3 | 2);
  put(content.size());
  return text + content;
}

TEST(OnnxFile, RefusesDeepNesting) {
  std::string text = field(1, "");                                                        // a graph's node
  for (int depth = 0; depth < 5'000; ++depth) text = field(1, field(5, field(6, text)));  // ... in an attribute's graph of a node
  expect_error(Code::kTooLarge, "levels", [&] { parse_model_text(field(7, text)); });
}

TEST(OnnxFile, RefusesMoreMessagesThanMemoryHolds) {
  std::string nodes;
  for (int i = 0; i < 4'000'001; ++i) nodes += "\x0a\x00"s;
  expect_error(Code::kTooLarge, "more than 4000000 nodes", [&] { parse_model_text(field(7, nodes)); });
}

// The walk over the bytes and the schema are two lists of the same fields: here they are compared.
TEST(OnnxFile, TheWalkKnowsEveryMessageOfTheSchema) {
  std::ifstream file(HONE_SOURCE_DIR "/formats/onnx.proto");
  ASSERT_TRUE(file) << "formats/onnx.proto";
  struct Child {
    int number;
    std::string type;
  };
  std::map<std::string, std::vector<Child>> messages;
  std::vector<std::string> open;
  for (std::string line; std::getline(file, line);) {
    std::istringstream text(line.substr(0, line.find("//")));
    std::vector<std::string> words{std::istream_iterator<std::string>(text), {}};
    if (words.empty()) continue;
    if (words.back() == "{") {
      open.push_back(words[0] == "message" ? words[1] : words[0] == "oneof" ? open.back() : "");
      if (words[0] == "message") messages[words[1]];
    } else if (words[0] == "}") {
      open.pop_back();
    } else if (not open.empty()) {
      if (words[0] == "optional" or words[0] == "repeated") words.erase(words.begin());
      if (words.size() == 4 and words[2] == "=") messages[open.back()].push_back({std::stoi(words[3]), words[0]});  // TYPE NAME = NUMBER;
    }
  }
  ASSERT_GE(messages.size(), 20u);
  const auto holds_messages = [&](const std::string& type) {
    const auto found = messages.find(type);
    return found != messages.end() and
           std::any_of(found->second.begin(), found->second.end(), [&](const Child& child) { return messages.contains(child.type); });
  };
  int checked = 0;
  std::map<std::string, std::vector<int>> way = {{"ModelProto", {}}};  // the fields that lead to a message
  std::queue<std::string> waiting({"ModelProto"});
  for (; not waiting.empty(); waiting.pop()) {
    for (const Child& child : messages[waiting.front()]) {
      if (not holds_messages(child.type)) continue;
      std::vector<int> path = way[waiting.front()];
      path.push_back(child.number);
      std::string text = "\x0f";  // a field of kind 7: damage that is seen only by looking inside
      for (auto number = path.rbegin(); number != path.rend(); ++number) text = field(*number, text);
      EXPECT_TRUE(find_wire_damage(bytes_of(text), "m.onnx").has_value()) << waiting.front() << " field " << child.number << " (" << child.type << ")";
      ++checked;
      if (way.emplace(child.type, path).second) waiting.push(child.type);
    }
  }
  EXPECT_GE(checked, 30);
}

TEST(OnnxFile, FindsAllTensors) {
  onnx::ModelProto model = small_model(1);
  onnx::AttributeProto* attribute = model.mutable_graph()->mutable_node(0)->add_attribute();
  attribute->mutable_t()->set_name("t");
  attribute->mutable_g()->add_initializer()->set_name("inner");
  attribute->add_tensors()->set_name("list");
  model.mutable_graph()->add_sparse_initializer()->mutable_values()->set_name("sparse");
  model.add_functions()->add_node()->add_attribute()->mutable_t()->set_name("function");
  Names names;
  for (const onnx::TensorProto* tensor : all_tensors(model)) names.push_back(tensor->name());
  EXPECT_EQ(names, (Names{"t", "inner", "list", "w0", "sparse", "function"}));
}

TEST(SaveModel, LargeModelsGetADataFile) {
  const TempFolder folder;
  save_model(small_model(3, 1000), folder / "m.onnx", {.longest_file = 8000, .shortest_external = 1024});
  EXPECT_EQ(folder.names(), (Names{"m.onnx", "m.onnx.1.data"}));
  EXPECT_LT(std::filesystem::file_size(folder / "m.onnx"), 1000u);
  expect_weights(folder / "m.onnx", 3);
}

TEST(SaveModel, SmallTensorsStayInTheModel) {
  const TempFolder folder;
  save_model(small_model(), folder / "m.onnx", {.longest_file = 10});
  EXPECT_EQ(folder.names(), Names{"m.onnx"});
}

TEST(SaveModel, ExternalDataComeAlong) {
  const TempFolder source, target;
  save_model(small_model(), source / "m.onnx", external_options("."));
  save_model(load_model(source / "m.onnx"), target / "n.onnx", {.source_folder = source.path()});
  EXPECT_EQ(target.names(), (Names{"n.onnx", "n.onnx.1.data"}));
  expect_weights(target / "n.onnx");
  expect_weights(source / "m.onnx");
}

TEST(SaveModel, ReplacesItsOwnDataOnly) {
  const TempFolder folder;
  folder.write("m.onnx.data", "another's");
  save_model(small_model(), folder / "m.onnx", external_options(folder.path()));
  folder.write("m.onnx.7.data", "not used by the model");
  save_model(load_model(folder / "m.onnx"), folder / "m.onnx", {.source_folder = folder.path()});
  EXPECT_EQ(folder.names(), (Names{"m.onnx", "m.onnx.2.data", "m.onnx.7.data", "m.onnx.data"}));
  expect_weights(folder / "m.onnx");
}

TEST(SaveModel, TypedFieldsAndUnknownTypesMoveOut) {
  onnx::ModelProto model = small_model(0);
  onnx::TensorProto* typed = model.mutable_graph()->add_initializer();
  typed->set_data_type(onnx::TensorProto::FLOAT);
  typed->add_dims(4);
  for (int i = 0; i < 4; ++i) typed->add_float_data(0);
  onnx::TensorProto* unknown = model.mutable_graph()->add_initializer();
  unknown->set_data_type(onnx::TensorProto::INT4);
  unknown->add_dims(3);
  unknown->set_raw_data("\x21\x03");
  const TempFolder folder;
  save_model(model, folder / "m.onnx", external_options("."));
  save_model(load_model(folder / "m.onnx"), folder / "n.onnx", external_options(folder.path()));
  const onnx::ModelProto back = load_model(folder / "n.onnx");
  EXPECT_EQ(tensor_of(back.graph().initializer(0), folder.path(), {}).element_count(), 4);
  EXPECT_EQ(back.graph().initializer(1).external_data(2).value(), "2");
  EXPECT_EQ(folder.read("n.onnx.1.data").substr(4096), "\x21\x03");
}

TEST(SaveModel, MissingExternalDataAreAnError) {
  const TempFolder folder;
  save_model(small_model(), folder / "m.onnx", external_options("."));
  const onnx::ModelProto model = load_model(folder / "m.onnx");
  const TempFolder other;
  expect_error(Code::kBadWeight, "m.onnx.1.data", [&] { save_model(model, other / "n.onnx", {.source_folder = other.path()}); });
  EXPECT_TRUE(other.names().empty());
}

// Whatever call fails: the model is the old or the new one, complete with its data, and no third file lies about.
TEST(SaveModel, AnyFailingCallLeavesOldOrNew) {
  int call_count = 1;
  for (int nth = 0; nth <= call_count; ++nth) {
    const TempFolder folder;
    save_model(small_model(1), folder / "m.onnx", external_options(folder.path()));
    FaultyFileSystem faulty;
    if (nth > 0) faulty.fail_any(nth, EIO);
    bool failed = false;
    {
      const ScopedFileSystem scope(faulty);
      try {
        save_model(small_model(2), folder / "m.onnx", external_options(folder.path()));
      } catch (const Error&) { failed = true; }
    }
    if (nth == 0) call_count = faulty.calls();
    const int weights = load_model(folder / "m.onnx").graph().initializer_size();
    expect_weights(folder / "m.onnx", weights);
    EXPECT_TRUE(failed or weights == 2) << nth;
    // The old data file may stay when it cannot be removed, or its use cannot be found out; nothing else may.
    for (const std::string& name : folder.names()) EXPECT_TRUE(name == "m.onnx" or name == "m.onnx.1.data" or name == "m.onnx.2.data") << name;
    if (weights == 1) { EXPECT_EQ(folder.names(), (Names{"m.onnx", "m.onnx.1.data"})) << nth; }
  }
  EXPECT_GT(call_count, 15);
}

TEST(SharedModels, LoadWithAllTheirWeights) {
  const std::filesystem::path models = HONE_SHARED_DIR "/models";
  if (not std::filesystem::exists(models)) GTEST_SKIP() << "The shared models are not here.";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(models)) {
    const std::string path = entry.path() / "model.onnx";
    if (not std::filesystem::exists(path)) continue;
    onnx::ModelProto model = load_model(path);
    for (const onnx::TensorProto* tensor : all_tensors(model)) {
      if (tensor->data_type() == onnx::TensorProto::STRING) continue;
      EXPECT_NO_THROW(tensor_of(*tensor, folder_of(path), {})) << path;
    }
    const std::string once = model.SerializeAsString();
    EXPECT_EQ(once.size(), std::filesystem::file_size(path)) << path;
    EXPECT_EQ(parse_model_text(once).SerializeAsString(), once) << path;
    ++count;
  }
  EXPECT_GT(count, 10);
}

}  // namespace
}  // namespace hone
