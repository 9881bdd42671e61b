// Every operator of ONNX is imported, or refused with a reason: held against the list that an installed ONNX library has (opset 17), and against our own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

#include "frontend/onnx/ops.h"
#include "frontend/onnx/standard.h"

namespace hone::test {
namespace {

using ::testing::IsEmpty;

struct Schema {
  std::string name;
  int since = 0;
  bool live = true;
};

/// What print_schemas prints.
std::vector<Schema> installed_schemas() {
  std::vector<Schema> schemas;
  const std::string command = std::string(HONE_BIN_DIR) + "/print_schemas";
  if (not std::filesystem::exists(command)) return schemas;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) text += static_cast<char>(c);
  std::istringstream lines(text);
  std::string state;
  for (Schema schema; lines >> schema.name >> schema.since >> state;) {
    schema.live = state == "live";
    schemas.push_back(schema);
  }
  return schemas;
}

std::map<std::string_view, std::string_view> refused() {
  std::map<std::string_view, std::string_view> reasons;
  for (const onnx::RefusedOperator& entry : onnx::refused_operators()) reasons.emplace(entry.name, entry.reason);
  return reasons;
}

TEST(Schemas, EachLiveOperatorOfOpset17IsSupportedOrRefused) {
  const std::vector<Schema> schemas = installed_schemas();
  if (schemas.empty()) GTEST_SKIP() << "no ONNX library was there when this was built (Debian: libonnx-dev)";
  const auto reasons = refused();
  std::vector<std::string> neither, unknown;
  int live = 0;
  for (const Schema& schema : schemas) {
    if (not schema.live) continue;
    ++live;
    if (not onnx::is_supported(schema.name) and not reasons.contains(schema.name)) neither.push_back(schema.name);
    if (not onnx::is_standard_operator(schema.name)) unknown.push_back(schema.name);
  }
  EXPECT_EQ(live, 176);
  EXPECT_THAT(neither, IsEmpty());
  EXPECT_THAT(unknown, IsEmpty()) << "they are missing in our list of ONNX's operators";
}

TEST(Schemas, EachOperatorThatWeKnowOfIsSupportedOrRefused) {
  const auto reasons = refused();
  std::vector<std::string> neither;
  for (const std::string_view name : onnx::standard_operators())
    if (not onnx::is_supported(name) and not reasons.contains(name)) neither.emplace_back(name);
  EXPECT_THAT(neither, IsEmpty());
}

TEST(Schemas, WhatIsRefusedIsNotSupportedAndSaysWhy) {
  for (const auto& [name, reason] : refused()) {
    EXPECT_FALSE(onnx::is_supported(name)) << name;
    EXPECT_GT(reason.size(), 20U) << name;
  }
}

}  // namespace
}  // namespace hone::test
