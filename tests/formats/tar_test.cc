#include "formats/tar.h"

#include <gtest/gtest.h>

#include "tests/support/tar_archive.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using test::TarArchive;
using test::TempFolder;

std::vector<std::pair<std::string, std::string>> files_in(const std::string& archive) {
  const TempFolder folder;
  const StreamedFile file(folder.write("a.tar", archive));
  TarReader reader(file);
  std::vector<std::pair<std::string, std::string>> files;
  while (const auto member = reader.next()) {
    std::string content(member->bytes, '?');
    file.read(member->offset, std::as_writable_bytes(std::span(content)));
    files.emplace_back(member->name, content);
  }
  return files;
}
using Files = std::vector<std::pair<std::string, std::string>>;

void refuse(std::string_view part, const std::string& archive) {
  expect_error(Code::kDataFormat, part, [&] { files_in(archive); });
}

TEST(Tar, ListsRegularFilesInOrder) {
  const std::string archive = TarArchive().add("d/", "", '5').add("d/a.txt", "hello").add("pipe", "", '6').add("b.bin", std::string(1000, 'x')).str();
  EXPECT_EQ(files_in(archive), (Files{{"d/a.txt", "hello"}, {"b.bin", std::string(1000, 'x')}}));
}

TEST(Tar, TellsOfFilesThatLieElsewhere) {
  const TempFolder folder;
  const std::string sparse = "22 GNU.sparse.major=1\n";
  const StreamedFile file(folder.write("a.tar", TarArchive().add("a", "1").add("b", "", '1').add("c", "", '2').add("d", "12", 'S').add("pax", sparse, 'x').add("e", "1").add("f", "1").str()));
  TarReader reader(file);
  std::vector<std::pair<std::string, std::string>> told;
  while (const auto member = reader.next()) told.emplace_back(member->name, member->stands_for);
  EXPECT_EQ(told, (Files{{"a", ""}, {"b", "a hard link"}, {"c", "a symbolic link"}, {"d", "a sparse file"}, {"e", "a sparse file"}, {"f", ""}}));
}

TEST(Tar, EndsAtTheEndOfTheFileToo) {
  EXPECT_EQ(files_in(TarArchive().add("a", "1").without_end()), (Files{{"a", "1"}}));
  EXPECT_EQ(files_in(""), Files{});
}

TEST(Tar, TellsThatTheEndMarkIsMissing) {
  const auto lacks_end = [](const std::string& archive) {
    const TempFolder folder;
    const StreamedFile file(folder.write("a.tar", archive));
    TarReader reader(file);
    EXPECT_TRUE(reader.next().has_value());
    EXPECT_FALSE(reader.lacks_end_mark());
    EXPECT_FALSE(reader.next().has_value());
    return reader.lacks_end_mark();
  };
  EXPECT_TRUE(lacks_end(TarArchive().add("a", "1").without_end()));
  EXPECT_FALSE(lacks_end(TarArchive().add("a", "1").str()));
}

TEST(Tar, LongNamesOfGnuAndPax) {
  const std::string name(300, 'n');
  EXPECT_EQ(files_in(TarArchive().add("././@LongLink", name + std::string(1, '\0'), 'L').add("nnn", "1").add("b", "2").str()),
            (Files{{name, "1"}, {"b", "2"}}));
  const std::string record = "310 path=" + name + "\n";
  ASSERT_EQ(record.size(), 310u);
  EXPECT_EQ(files_in(TarArchive().add("pax", "20 mtime=1234567890\n" + record, 'x').add("nnn", "1").str()), (Files{{name, "1"}}));
}

TEST(Tar, RefusesWhatIsDamaged) {
  const std::string good = TarArchive().add("a.txt", std::string(600, 'x')).add("b.txt", "hello").str();
  refuse("cut off", good.substr(0, 300));
  refuse("\"a.txt\" would end beyond the archive", good.substr(0, 900));
  std::string flipped = good;
  flipped[3] ^= 1;
  refuse("no tar header at byte 0", flipped);
  flipped = good;
  flipped[1536 + 3] ^= 1;
  refuse("no tar header at byte 1536", flipped);
  refuse("not a tar archive but gzip-compressed", "\x1f\x8b" + std::string(1000, 'x'));
}

TEST(Tar, RefusesAbsurdSizes) {
  refuse("would end beyond the archive", TarArchive().add("a", "1", '0', "77777777777").str());
  refuse("would end beyond the archive", TarArchive().add("a", "1", '0', std::string("\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12)).str());
  refuse("would end beyond the archive", TarArchive().add("a", "1", '0', std::string(12, '\xff')).str());
  refuse("would end beyond the archive", TarArchive().add("a", "1", '0', "-1").str());
  refuse("announces a name of", TarArchive().add("././@LongLink", std::string(100'000, 'n'), 'L').add("a", "1").str());
  refuse("an extended header that is none", TarArchive().add("pax", "99999999 path=a\n", 'x').add("a", "1").str());
  refuse("an extended header that is none", TarArchive().add("pax", "1 path=a\n", 'x').add("a", "1").str());
}

}  // namespace
}  // namespace hone
