// What a user names on the command line: NAME=FILE[:PART][ROWS],...
#include "runtime/data/spec.h"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::TempFolder;

TEST(DataSpec, NamesFilesPartsAndRows) {
  const std::vector<std::string> items = {"x=a:b/c.npz:key,y=labels,1.npy[0:8000]", "z=t10k-images-idx3-ubyte.gz[5:]", "w=f.bin:f32:60000x784"};
  const auto sources = parse_data("--train", items);
  ASSERT_EQ(sources.size(), 4u);
  EXPECT_EQ(sources[0].path, "a:b/c.npz");
  EXPECT_EQ(sources[0].part, "key");
  EXPECT_EQ(sources[1].path, "labels,1.npy");
  EXPECT_EQ(sources[1].end_row, 8000);
  EXPECT_EQ(sources[2].kind, FileKind::kIdx);
  EXPECT_EQ(sources[2].first_row, 5);
  EXPECT_EQ(sources[3].part, "f32:60000x784");
}

TEST(DataSpec, PartsMayHoldCommasAndColons) {
  const std::vector<std::string> items = {"x=a.csv:age,3..5,y=t.bin:next_tokens:u16:128:64,z=d/s-*.tar:x.npy[3:]"};
  const auto sources = parse_data("--train", items);
  ASSERT_EQ(sources.size(), 3u);
  EXPECT_EQ(sources[0].kind, FileKind::kCsv);
  EXPECT_EQ(sources[0].part, "age,3..5");
  EXPECT_EQ(sources[1].part, "next_tokens:u16:128:64");
  EXPECT_EQ(sources[2].kind, FileKind::kTar);
  EXPECT_EQ(sources[2].path, "d/s-*.tar");
  EXPECT_EQ(sources[2].first_row, 3);
}

TEST(DataSpec, WhatIsThereAsAFileIsTheFile) {
  const TempFolder folder;
  for (const char* name : {"k.npz", "a.npy:b/c.npy", "d.npz:e/f.npz"}) {
    make_folders(folder_of(folder / name));
    folder.write(name, "");
  }
  const auto parsed = [&](const std::string& text) {
    const std::vector<std::string> items = {"x=" + folder / text};
    const DataSource source = parse_data("--train", items).at(0);
    return source.path.substr((folder / "").size()) + " " + source.part;
  };
  EXPECT_EQ(parsed("k.npz:dense/kernel"), "k.npz dense/kernel");
  EXPECT_EQ(parsed("k.npz:dense/kernel:0[0:3]"), "k.npz dense/kernel:0");
  EXPECT_EQ(parsed("*.npz:dense/kernel"), "*.npz dense/kernel");
  EXPECT_EQ(parsed("a.npy:b/c.npy"), "a.npy:b/c.npy ");
  EXPECT_EQ(parsed("d.npz:e/f.npz:g/h"), "d.npz:e/f.npz g/h");
  EXPECT_EQ(parsed("not.npy:b/there.npy"), "not.npy:b/there.npy ");
}

TEST(DataSpec, RefusesAllThatIsWrongAtOnce) {
  const std::vector<std::string> items = {"x.npy", "x=a.txt", "x=a.csv:1,2", "y=b.tar", "z=c.bin", "u=d.npy:key"};
  try {
    parse_data("--train", items);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diags().size(), 6u) << error.what();  // x is given twice, too
    EXPECT_EQ(error.exit_code(), 2);
    for (const Diag& diag : error.diags()) EXPECT_FALSE(diag.notes.empty());
  }
}

}  // namespace
}  // namespace hone
