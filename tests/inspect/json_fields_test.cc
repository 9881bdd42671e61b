// docs/dump_json.md names every field that hone-dump --as json writes, and no other.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "tests/frontend/test_model.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using nlohmann::json;
using Names = std::set<std::string>;

/// The words between `open` and `close` that stand in `text`, which may name several between one pair.
Names names_between(const std::string& text, const std::string& open, const std::string& close) {
  Names names;
  for (std::size_t at = text.find(open); at != std::string::npos;) {
    const std::size_t begin = at + open.size(), end = text.find(close, begin);
    if (end == std::string::npos) break;
    for (const std::string& name : split(text.substr(begin, end - begin), ',')) names.insert(name.substr(name.find_first_not_of(' ')));
    at = text.find(open, end + close.size());
  }
  return names;
}

struct Field {
  Names inside;  ///< of what it is, or is a list of, where the table says so: `{name, value}`
};
using Table = std::map<std::string, Field>;

/// The tables of the documentation, by their headings.
std::map<std::string, Table> documented() {
  std::map<std::string, Table> tables;
  std::string heading;
  for (const std::string& line : split(read_file(std::string(HONE_SOURCE_DIR) + "/docs/dump_json.md"), '\n')) {
    if (line.starts_with("#")) heading = line.substr(line.find(' ') + 1);
    const std::vector<std::string> cells = split(line, '|');
    if (cells.size() < 3) continue;
    for (const std::string& name : names_between(cells[1], "`", "`")) tables[heading][name].inside = names_between(cells[2], "`{", "}`");
  }
  return tables;
}

/// What the fields hold that have a table of their own.
const std::map<std::pair<std::string, std::string>, std::string> kTables = {
    {{"file", "graph"}, "graph"},       {{"file", "weights"}, "weight"},          {{"file", "program"}, "program"}, {{"graph", "values"}, "value"}, {{"graph", "nodes"}, "node"},
    {{"node", "bodies"}, "graph"},      {{"program", "persistents"}, "persistent"}, {{"program", "entries"}, "entry"}, {{"entry", "steps"}, "step"},  {{"entry", "buffers"}, "buffer"},
    {{"entry", "memory"}, "memory"},    {{"step", "bodies"}, "entry"},
};

class Checker {
 public:
  void check(const json& object, const std::string& heading) {
    const Table& table = tables_.at(heading);
    for (const auto& [name, value] : object.items()) {
      seen_[heading].insert(name);
      const auto field = table.find(name);
      if (field == table.end()) {
        ADD_FAILURE() << "docs/dump_json.md does not name " << name << " of " << heading;
        continue;
      }
      const auto own_table = kTables.find({heading, name});
      for (const json& one : value.is_array() ? value : json::array({value})) {
        if (own_table != kTables.end() and one.is_object()) check(one, own_table->second);
        else if (not field->second.inside.empty() and one.is_object()) check_inside(one, heading + "." + name, field->second.inside);
      }
    }
  }
  /// Every field that is documented was there.
  void check_all_seen() const {
    for (const auto& [heading, table] : tables_)
      for (const auto& [name, field] : table) {
        EXPECT_TRUE(contains(heading, name)) << "docs/dump_json.md names " << name << " of " << heading << ", and no file here has it";
        for (const std::string& inner : field.inside) EXPECT_TRUE(contains(heading + "." + name, inner)) << "docs/dump_json.md names " << inner << " in " << name << " of " << heading << ", and no file here has it";
      }
  }

 private:
  void check_inside(const json& object, const std::string& where, const Names& inside) {
    for (const auto& [name, value] : object.items()) {
      seen_[where].insert(name);
      EXPECT_TRUE(inside.contains(name)) << "docs/dump_json.md does not name " << name << " in " << where;
    }
  }
  bool contains(const std::string& where, const std::string& name) const {
    const auto found = seen_.find(where);
    return found != seen_.end() and found->second.contains(name);
  }

  const std::map<std::string, Table> tables_ = documented();
  std::map<std::string, Names> seen_;
};

void write_plan(const TempFolder& folder, const std::string& name, const TestModel& model) {
  folder.write(name + ".onnx", model.proto.SerializeAsString());
  run_well(folder.path(), "hone-compile " + name + ".onnx --set loss.kind=mse --set optimizer.kind=sgd --levels x86-64-v3 -o " + name + ".hone");
}

void write_plan_with_loop(const TempFolder& folder) {
  TestModel model;
  model.input("series", {4, "N", 3}).output("last").initializer("wx", wavy({1, 6, 3})).initializer("wh", wavy({1, 6, 2}));
  model.node("GRU", {"series", "wx", "wh"}, {"", "last"}).named("loop").set("hidden_size", 2);
  write_plan(folder, "loop", model);
}

void write_plan_with_panels(const TempFolder& folder) {
  TestModel model;
  model.input("x", {"N", 128}).output("y").initializer("w", wavy({128, 64}));
  model.node("MatMul", {"x", "w"}, {"y"}).named("product");
  write_plan(folder, "panels", model);
}

TEST(DumpJsonFields, AreThoseOfTheDocumentation) {
  TempFolder folder;
  write_conv_plan(folder);
  run_well(folder.path(), "hone-run train conv.hone --train x=x.npy,y=y.npy --epochs 1 --run-dir run --quiet --out trained.safetensors --trace trace.json");
  std::string checkpoint;
  for (const auto& one : std::filesystem::directory_iterator(folder / "run"))
    if (const std::string name = one.path().filename(); name.starts_with("checkpoint-")) checkpoint = "run/" + name;
  write_plan_with_loop(folder);
  write_plan_with_panels(folder);
  Checker checker;
  for (const std::string& arguments : {std::string("conv.onnx"), std::string("loop.hone"), std::string("panels.hone"), std::string("conv.hone --trace trace.json"), std::string("trained.safetensors"), checkpoint})
    checker.check(json::parse(run_well(folder.path(), "hone-dump " + arguments + " --as json").out), "file");
  checker.check_all_seen();
}

}  // namespace
}  // namespace hone::test
