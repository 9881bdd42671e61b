// A folder of its own for each test, removed with all that is in it; and what a test says about errors.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/diag.h"

namespace hone::test {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hone-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  /// Writes a file without going through what is tested; its path.
  std::string write(std::string_view name, std::string_view content) const {
    std::ofstream(*this / name, std::ios::binary) << content;
    return *this / name;
  }
  std::string read(std::string_view name) const {
    std::ostringstream text;
    text << std::ifstream(*this / name, std::ios::binary).rdbuf();
    return text.str();
  }
  /// The names in it, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) result.push_back(entry.path().filename().string());
    std::sort(result.begin(), result.end());
    return result;
  }

 private:
  std::string path_;
};

/// `action` throws an Error of `code` whose text holds `part`.
template <typename Action>
void expect_error(Code code, std::string_view part, Action&& action) {
  try {
    action();
    ADD_FAILURE() << "nothing was thrown, where " << to_string(code) << " with \"" << part << "\" was expected";
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.diags().front().code), to_string(code)) << error.what();
    EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos) << "\"" << part << "\" is not in:\n" << error.what();
  }
}

}  // namespace hone::test
