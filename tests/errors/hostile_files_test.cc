// Models whose weights stand where they should not: outside of the model's folder, beyond the file's end, in what is no file.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/errors/error_case.h"
#include "tests/frontend/test_model.h"

namespace hone::test {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

/// A model in folder "model" whose weight b f32[4] is external as `entries` say. Beside the folder lies secret.bin, in it weights.bin, 64 bytes each.
ErrorCase external(const char* name, std::vector<std::string> says, Entries entries, std::function<void(const TempFolder&)> more = {}) {
  const auto prepare = [entries, more](const TempFolder& folder) {
    std::filesystem::create_directory(folder / "model");
    folder.write("secret.bin", std::string(64, 's'));
    folder.write("model/weights.bin", std::string(64, 'w'));
    TestModel model = TestModel::of_node("Add", {"N", 4}, {f32({4}, {1, 2, 3, 4})});
    onnx::TensorProto& weight = *model.proto.mutable_graph()->mutable_initializer(0);
    weight.clear_raw_data();
    weight.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : entries) {
      auto& entry = *weight.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    folder.write("model/model.onnx", model.proto.SerializeAsString());
    if (more) more(folder);
  };
  says.insert(says.begin(), {"HN-01", "\"b\""});
  return {name, "hone-compile model/model.onnx -o plan.hone", 3, std::move(says), prepare};
}

ErrorCase linked(const char* name, std::vector<std::string> says, const std::string& location, std::function<void(const TempFolder&)> link) {
  return external(name, std::move(says), {{"location", location}}, std::move(link));
}

const ErrorCase kCases[] = {
    external("TheFolderAbove", {"../secret.bin"}, {{"location", "../secret.bin"}}),
    external("AboveByAWayDown", {"secret.bin"}, {{"location", "nothing/../../secret.bin"}}),
    external("AboveFromHere", {"secret.bin"}, {{"location", "./../secret.bin"}}),
    external("AnAbsolutePath", {"/etc/passwd"}, {{"location", "/etc/passwd"}}),
    external("ADevice", {"/dev/zero"}, {{"location", "/dev/zero"}}),
    external("NoLocation", {}, {{"offset", "0"}}),
    external("AnEmptyLocation", {}, {{"location", ""}}),
    external("TheFolderItself", {}, {{"location", "."}}),
    external("ALocationThatIsNoText", {}, {{"location", std::string("weights\0.bin\xff", 13)}}),
    external("ALocationOfAMegabyte", {}, {{"location", std::string(1 << 20, 'w')}}),
    external("AnOffsetBeyondTheEnd", {"weights.bin"}, {{"location", "weights.bin"}, {"offset", "1000"}}),
    external("ALengthBeyondTheEnd", {"weights.bin"}, {{"location", "weights.bin"}, {"offset", "56"}, {"length", "16"}}),
    external("AnotherLength", {"12 long"}, {{"location", "weights.bin"}, {"length", "12"}}),
    external("ANegativeOffset", {"-16"}, {{"location", "weights.bin"}, {"offset", "-16"}}),
    external("AnOffsetThatOverflows", {"weights.bin"}, {{"location", "weights.bin"}, {"offset", "18446744073709551608"}, {"length", "16"}}),
    external("AnOffsetBeyondAllNumbers", {}, {{"location", "weights.bin"}, {"offset", "99999999999999999999999"}}),
    external("AnOffsetOfWords", {}, {{"location", "weights.bin"}, {"offset", "here"}}),
    linked("ASymlinkOutOfTheFolder", {"link.bin"}, "link.bin",
           [](const TempFolder& folder) { std::filesystem::create_symlink("../secret.bin", folder / "model/link.bin"); }),
    linked("ASymlinkToAnAbsolutePath", {"link.bin"}, "link.bin",
           [](const TempFolder& folder) { std::filesystem::create_symlink(folder / "secret.bin", folder / "model/link.bin"); }),
    linked("ASymlinkOfAFolderOutOfTheFolder", {"away", "symbolic link"}, "away/secret.bin",
           [](const TempFolder& folder) { std::filesystem::create_directory_symlink("..", folder / "model/away"); }),
    linked("ASymlinkToItself", {"link.bin"}, "link.bin",
           [](const TempFolder& folder) { std::filesystem::create_symlink("link.bin", folder / "model/link.bin"); }),
    linked("APipe", {"pipe.bin"}, "pipe.bin", [](const TempFolder& folder) { ASSERT_EQ(::mkfifo((folder / "model/pipe.bin").c_str(), 0600), 0); }),
};

HONE_ERROR_CASES(HostileFiles, kCases);

}  // namespace
}  // namespace hone::test
