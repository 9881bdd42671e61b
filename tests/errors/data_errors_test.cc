// Data that are not there, damaged, or do not fit the plan: each named by file, and by row where it is a value.
#include <gtest/gtest.h>

#include <filesystem>

#include "formats/npy.h"
#include "formats/npz.h"
#include "tests/errors/error_case.h"
#include "tests/support/tar_archive.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

std::string train(const std::string& data) { return "hone-run train mlp.hone --train " + data + " --out trained.onnx"; }

/// mlp.hone with its data, and what `more` writes besides.
auto plan_and(std::function<void(const TempFolder&)> more) {
  return [more](const TempFolder& folder) {
    write_mlp_plan(folder);
    more(folder);
  };
}

auto floats(const std::string& name, std::vector<std::int64_t> shape) {
  return plan_and([name, shape](const TempFolder& folder) { write_floats(folder, name, shape); });
}

auto labels(std::vector<std::int64_t> values) {
  return plan_and([values](const TempFolder& folder) { write_integers(folder, "labels.npy", values); });
}

/// data.npz with the arrays x and y, then `damage` done to its bytes.
auto archive(std::function<void(std::string&)> damage = [](std::string&) {}) {
  return plan_and([damage](const TempFolder& folder) {
    write_npz(folder / "data.npz", {{"x", read_npy(folder / "x.npy")}, {"y", read_npy(folder / "y.npy")}});
    std::string bytes = folder.read("data.npz");
    damage(bytes);
    folder.write("data.npz", bytes);
  });
}

auto file(const std::string& name, const std::string& content) {
  return plan_and([name, content](const TempFolder& folder) { folder.write(name, content); });
}

/// A header and so many bytes of elements.
std::string safetensors(const std::string& header, std::size_t bytes) {
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> 8 * i & 0xff);
  return length + header + std::string(bytes, '\0');
}

auto ids_with(std::int64_t at, std::int64_t value) {
  return [at, value](const TempFolder& folder) {
    write_ids_plan(folder);
    std::vector<std::int64_t> ids(10 * 12, 1);
    ids[static_cast<std::size_t>(at)] = value;
    write_npy(folder / "ids.npy", Tensor::of<std::int64_t>({10, 12}, std::span<const std::int64_t>(ids)));
  };
}

const ErrorCase kCases[] = {
    {"MissingFile", train("x=x.npy,y=lables.npy"), 7, {"HN-0401", "lables.npy", "labels.npy"}, labels({0})},
    {"SeveralMissingFilesAtOnce", train("x=a.npy,y=b.npy"), 7, {"a.npy", "b.npy"}, write_mlp_plan},
    {"NotANpyFile", train("x=x.npy,y=words.npy"), 4, {"HN-0301", "words.npy"}, plan_and([](const TempFolder& f) { f.write("words.npy", "1 2 3"); })},
    {"TruncatedNpy", train("x=cut.npy,y=y.npy"), 4, {"HN-0301", "cut.npy"}, plan_and([](const TempFolder& f) {
       f.write("cut.npy", f.read("x.npy").substr(0, 200));
     })},
    {"WrongShape", train("x=wide.npy,y=y.npy"), 4, {"HN-0302", "wide.npy is f32[10,5]", "\"x\" takes f32[N,4]"}, floats("wide.npy", {10, 5})},
    {"AllColumnsForBoth", train("x=all.csv,y=all.csv"), 4, {"HN-0302", "all.csv is", "these are all columns", "y=FILE.csv:-1"}, file("all.csv", "1,2,3,4,0\n5,6,7,8,1\n")},
    {"OneSample", train("x=one.npy,y=y.npy"), 4, {"HN-0302", "one.npy is f32[4]", "one sample: numpy.expand_dims(x, 0)"}, floats("one.npy", {4})},
    {"RowsOfAnotherLength", train("x=wide.npy,y=y.npy"), 4, {"HN-0302", "a row of it is [5], and [4] is wanted"}, floats("wide.npy", {10, 5})},
    {"RowsOfOneAxisMore", train("x=rgb.npy,y=y.npy"), 4, {"HN-0302", "a row of it is [4,3], and [4] is wanted"}, floats("rgb.npy", {10, 4, 3})},
    {"ClassesForALossOfNumbers", "hone-run train mse.hone --train x=x.npy,y=y.npy --out trained.onnx", 4, {"HN-0302", "are these numbers of classes?", "each of the 3 numbers", "softmax_cross_entropy"}, [](const TempFolder& f) {
       write_mlp(f);
       run_well(f.path(), "hone-compile mlp.onnx -r train.toml --set loss.kind=mse --set metrics.list=[] -o mse.hone");
     }},
    {"OneHotTargetsOfFloats", train("x=x.npy,y=onehot.npy"), 4, {"HN-0302", "onehot.npy is f32[10,3]", "one-hot", "argmax"}, floats("onehot.npy", {10, 3})},
    {"WeightsOfSamplesThatThePlanHasNot",
     train("x=x.npy,y=y.npy,sample_weight=w.npy"),
     4,
     {"HN-0306", "no input \"sample_weight\"", "--set loss.sample_weights=true"},
     floats("w.npy", {10})},
    {"TwoArraysInOneFile", train("x=two.npy,y=y.npy"), 4, {"HN-0301", "two.npy: f32[5,4] needs 80 bytes, and 208 more are behind them", "numpy.savez"}, [](const TempFolder& f) {
       write_mlp_plan(f);
       write_npy(f / "part.npy", Tensor::zeros(DType::kF32, {5, 4}));
       f.write("two.npy", f.read("part.npy") + f.read("part.npy"));
     }},
    {"Pictures", train("x=photo.png,y=y.npy"), 2, {"HN-0001", "photo.png", "pictures are not decoded", "numpy.save"}, write_mlp_plan},
    {"OneHotTargets", train("x=x.npy,y=onehot.npy"), 4, {"HN-0302", "onehot.npy is i64[10,3]", "one-hot", "argmax"}, plan_and([](const TempFolder& f) {
       write_npy(f / "onehot.npy", Tensor::zeros(DType::kI64, {10, 3}));
     })},
    {"ArraysOfDifferentLength", train("x=x.npy,y=labels.npy"), 4, {"HN-0304", "x.npy has 10 rows", "labels.npy has 3 rows"}, labels({0, 1, 2})},
    {"NoRows", train("x=none.npy,y=y.npy"), 4, {"HN-0304", "none.npy has no rows", "at least one sample"}, floats("none.npy", {0, 4})},
    {"FloatsWhereIntegersAreWanted",
     train("x=x.npy,y=soft.npy"),
     4,
     {"HN-0303", "soft.npy holds f32", "takes i64", "floats are never made integers"},
     floats("soft.npy", {10})},
    {"LabelTooLarge",
     train("x=x.npy,y=labels.npy"),
     4,
     {"HN-0305", "labels.npy: row 7 holds 3", "0 to 2", "classes count from 0"},
     labels({0, 1, 2, 0, 1, 2, 0, 3, 2, 0})},
    {"RowsWithoutTheirEnd", train("x=x.npy[0:5,y=y.npy[0:5]"), 2, {"HN-0001", "these are no rows", "[FIRST:LAST]"}, write_mlp_plan},
    {"RowsFromTheEnd", train("x=x.npy[-5:],y=y.npy[-5:]"), 2, {"HN-0001", "these are no rows", "whole numbers that count from 0"}, write_mlp_plan},
    {"LabelsFromOneOn", train("x=x.npy,y=labels.npy"), 4, {"HN-0305", "row 2 holds 3", "these count from 1: numpy.save(\"y.npy\", y - 1)"}, labels({1, 2, 3, 1, 2, 3, 1, 2, 3, 1})},
    {"LabelsOfMoreClasses", train("x=x.npy,y=labels.npy"), 4, {"HN-0305", "row 2 holds 7", "the model has 3: hone-compile --new-head classes=N"}, labels({1, 2, 7, 1, 2, 3, 1, 2, 3, 1})},
    {"NegativeLabel", train("x=x.npy,y=labels.npy"), 4, {"HN-0305", "labels.npy: row 2 holds -1", "0 to 2"}, labels({0, 1, -1, 0, 1, 2, 0, 1, 2, 0})},
    {"LabelInTheRowsThatAreTaken", train("x=x.npy[5:10],y=labels.npy[5:10]"), 4, {"labels.npy: row 9 holds 7"}, labels({9, 1, 2, 0, 1, 2, 0, 1, 2, 7})},
    {"LabelInTheValidationData",
     train("x=x.npy,y=y.npy") + " --valid x=x.npy,y=labels.npy",
     4,
     {"labels.npy: row 0 holds 5"},
     labels({5, 1, 2, 0, 1, 2, 0, 1, 2, 0})},
    {"IdBeyondTheVocabulary",
     "hone-run train ids.hone --train ids=ids.npy,y=y.npy --out trained.onnx",
     4,
     {"HN-0305", "ids.npy: row 3, element [5] holds 50", "\"ids\" takes", "49"},
     ids_with(3 * 12 + 5, 50)},
    {"IdBeyondTheVocabularyWhenPredicting",
     "hone-run predict ids.hone --data x=ids.npy --out out.npz",
     4,
     {"HN-0305", "row 0, element [0] holds 9000"},
     ids_with(0, 9000)},
    {"IdThatItsTypeCannotHold", "hone-run eval ids.hone --data x=ids.npy,y=y.npy", 4, {"HN-0305", "holds 4294967297"}, ids_with(14, 0x1'0000'0001)},
    {"InputThatNothingFeeds", train("y=y.npy"), 4, {"HN-0306", "nothing feeds the input \"x\" (f32[N,4])", "add x=FILE"}, write_mlp_plan},
    {"TargetThatNothingFeeds", train("x=x.npy"), 4, {"HN-0306", "nothing feeds the target (i64[N])", "add y=FILE"}, write_mlp_plan},
    {"UnknownInput", train("x=x.npy,y=y.npy,mask=x.npy"), 4, {"HN-0306", "no input \"mask\"", "it takes x, target"}, write_mlp_plan},
    {"MisspelledInput", "hone-run predict ids.hone --data idz=ids.npy --out out.npz", 4, {"no input \"idz\"", "did you mean \"ids\"?"}, write_ids_plan},
    {"InputTwice", train("x=x.npy,x=x.npy,y=y.npy"), 2, {"\"x\" is given twice"}, write_mlp_plan},
    {"TargetForAPrediction", "hone-run predict mlp.hone --data x=x.npy,y=y.npy --out out.npz", 4, {"HN-0306", "\"y\"", "leave it out"}, write_mlp_plan},
    {"DamagedArchive", train("x=data.npz:x,y=data.npz:y"), 4, {"HN-0301", "data.npz"}, archive([](std::string& bytes) { bytes[180] ^= 1; })},
    {"TruncatedArchive", train("x=data.npz:x,y=data.npz:y"), 4, {"HN-0301", "data.npz"}, archive([](std::string& bytes) { bytes.resize(150); })},
    {"WrongKey", train("x=data.npz:xs,y=data.npz:y"), 4, {"HN-0306", "data.npz", "\"xs\"", "did you mean \"x\"?"}, archive()},
    {"UnknownFileType", train("x=x.dat,y=y.npy"), 2, {"HN-0001", "x.dat", ".npy"}, write_mlp_plan},
    {"RawFileOfAnotherLength", train("x=x.bin:f32:10x4,y=y.npy"), 4, {"HN-0301", "x.bin", "160"}, plan_and([](const TempFolder& f) {
       f.write("x.bin", "123");
     })},
    {"RaggedCsv",
     train("x=x.csv:0..3,y=y.npy"),
     4,
     {"HN-0301", "x.csv: line 3 has 4 fields", "the first line has 5"},
     file("x.csv", "a,b,c,d,e\n1,2,3,4,5\n1,2,3,4\n")},
    {"WordInCsv",
     train("x=x.csv:a..d,y=y.npy"),
     4,
     {"HN-0301", "line 2: column 1 (\"b\") holds \"two\", which is no number"},
     file("x.csv", "a,b,c,d\n1,two,3,4\n")},
    {"LabelTooLargeInCsv", train("x=x.csv:a..d,y=x.csv:label"), 4, {"HN-0305", "x.csv:label: line 6 holds 3"}, file("x.csv", "a,b,c,d,label\n1,2,3,4,0\n\n1,2,3,4,1\n\n1,2,3,4,3\n")},
    {"LabelTooLargeInRowsOfCsv", train("x=x.csv:a..d[2:],y=x.csv:label[2:]"), 4, {"HN-0305", "x.csv:label: line 4 holds 3"}, file("x.csv", "a,b,c,d,label\n1,2,3,4,9\n1,2,3,4,1\n1,2,3,4,3\n")},
    {"Device", train("x=endless.csv,y=y.npy"), 7, {"HN-0401", "endless.csv: it is a device, not a file"}, plan_and([](const TempFolder& f) { std::filesystem::create_symlink("/dev/zero", f / "endless.csv"); })},
    {"GapInCsv", train("x=x.csv,y=y.npy"), 4, {"line 1: column 2 is empty"}, file("x.csv", "1,2,,4\n")},
    {"OpenQuoteInCsv", train("x=x.csv,y=y.npy"), 4, {"line 2: a quote that is never closed"}, file("x.csv", "1,2,3,4\n\"1,2,3,4\n")},
    {"EndlessLineInCsv", train("x=x.csv,y=y.npy"), 3, {"HN-0115", "line 1 is longer than 16 MiB"},
     plan_and([](const TempFolder& folder) { folder.write("x.csv", std::string(20 << 20, '1')); })},  // not file(): the table is made anew, and copied, for each test of this folder
    {"NoSuchColumnInCsv",
     train("x=x.csv:a..d,y=x.csv:lable"),
     4,
     {"HN-0306", "no column \"lable\"", "did you mean \"label\"?"},
     file("x.csv", "a,b,c,d,label\n1,2,3,4,0\n")},
    {"NotSafetensors", train("x=x.safetensors:x,y=y.npy"), 4, {"HN-0301", "x.safetensors"}, file("x.safetensors", "words, not tensors")},
    {"OverlappingSafetensors",
     train("x=x.safetensors:x,y=y.npy"),
     4,
     {"HN-0301", "x.safetensors"},
     file("x.safetensors", safetensors(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"z":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12))},
    {"SafetensorsBeyondTheEnd",
     train("x=x.safetensors:x,y=y.npy"),
     4,
     {"HN-0301", "x.safetensors"},
     file("x.safetensors", safetensors(R"({"x":{"dtype":"F32","shape":[10,4],"data_offsets":[0,160]}})", 100))},
    {"SafetensorsOfAbsurdShape",
     train("x=x.safetensors:x,y=y.npy"),
     3,
     {"HN-0115", "x.safetensors"},
     file("x.safetensors", safetensors(R"({"x":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,100]}})", 100))},
    {"NoSuchTensor",
     train("x=x.safetensors:image,y=y.npy"),
     4,
     {"HN-0306", "no tensor \"image\"", "did you mean \"images\"?"},
     file("x.safetensors", safetensors(R"({"images":{"dtype":"F32","shape":[10,4],"data_offsets":[0,160]}})", 160))},
    {"LinkInATarArchive", train("x=x.tar:cls,y=y.npy"), 4, {"HN-0301", "x.tar holds \"b.cls\" as a hard link, which is not followed", "--hard-dereference"}, file("x.tar", TarArchive().add("a.cls", "0").add("b.cls", "", '1').str())},
    {"NotATarArchive", train("x=x.tar:npy,y=y.npy"), 4, {"HN-0301", "x.tar: not a tar archive but a NumPy .npy file"}, plan_and([](const TempFolder& f) {
       f.write("x.tar", f.read("x.npy") + std::string(512, '\0'));
     })},
    {"TruncatedTar",
     train("x=x.tar:npy,y=y.npy"),
     4,
     {"HN-0301", "x.tar", "cut off"},
     file("x.tar", TarArchive().add("a.npy", std::string(2000, 'x')).str().substr(0, 1500))},
    {"AbsurdSizeInTar",
     train("x=x.tar:npy,y=y.npy"),
     4,
     {"\"a.npy\" would end beyond the archive"},
     file("x.tar", TarArchive().add("a.npy", "1", '0', "77777777777").str())},
    {"ObjectsInTar",
     train("x=x.tar:npy,y=y.npy"),
     4,
     {"HN-0303", "x.tar:a.npy", "Python objects"},
     file("x.tar",
          TarArchive().add("a.npy", std::string("\x93NUMPY\x01\x00\x3e\x00", 10) + "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }      \n").str())},
    {"SampleWithoutItsFileInTar",
     train("x=x.tar:npy,y=x.tar:cls"),
     4,
     {"HN-0306", "\"b\" has no file that ends in .cls"},
     file("x.tar", TarArchive().add("a.cls", "0").add("b.txt", "").str())},
    {"NotCifar",
     train("x=x.bin:cifar10:images,y=x.bin:cifar10:labels"),
     4,
     {"HN-0301", "\"x.bin\" has 5000 bytes", "cifar10 records of 3073"},
     file("x.bin", std::string(5000, '1'))},
    {"TooFewTokens",
     train("x=x.bin:tokens:u16:64,y=x.bin:next_tokens:u16:64"),
     4,
     {"HN-0304", "\"x.bin\" has 50 tokens", "takes 65"},
     file("x.bin", std::string(100, '1'))},
    {"HalfAToken", train("x=x.bin:tokens:u32:4,y=y.npy"), 4, {"HN-0301", "\"x.bin\" has 101 bytes"}, file("x.bin", std::string(101, '1'))},
    {"PatternThatNothingFits", train("x=x_*.npy,y=y.npy"), 7, {"HN-0401", "no file fits the pattern", "x_*.npy"}, write_mlp_plan},
    {"FilesOfOnePatternDiffer", train("x=part_*.npy,y=y.npy"), 4, {"HN-0302", "part_1.npy is [5,4]", "part_2.npy is [5,3]"}, plan_and([](const TempFolder& f) {
       write_floats(f, "part_1.npy", {5, 4});
       write_floats(f, "part_2.npy", {5, 3});
     })},
    {"IdBeyondTheVocabularyInTokens",
     "hone-run predict ids.hone --data x=t.bin:tokens:u16:12 --out out.npz",
     4,
     {"HN-0305", "t.bin: row 1, element [3] holds 77"},
     [](const TempFolder& folder) {
       write_ids_plan(folder);
       std::string tokens(80, '\0');
       tokens[2 * 15] = 77;
       folder.write("t.bin", tokens);
     }},
    {"RowsBeyondTheEnd", train("x=x.npy[0:20],y=y.npy[0:20]"), 4, {"HN-0304", "has 10 rows", "0 to 20"}, write_mlp_plan},
    {"CallWithAnotherType",
     "hone-run call mlp.hone --in x=y.npy --out out.npz",
     4,
     {"HN-0303", "y.npy is i64[10]", "\"x\" takes f32[N,4]", "hone-run predict"},
     write_mlp_plan},
    {"CallWithAnotherShape",
     "hone-run call mlp.hone --in x=wide.npy --out out.npz",
     4,
     {"HN-0302", "\"x\" has shape [10,5]", "[N,4]"},
     floats("wide.npy", {10, 5})},
};

HONE_ERROR_CASES(DataErrors, kCases);

}  // namespace
}  // namespace hone::test
