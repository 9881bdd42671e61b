#include "base/streamed_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/file_system.h"
#include "base/files.h"
#include "tests/support/bytes.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::bytes_of;
using test::expect_error;
using test::TempFolder;

std::string text_at(const StreamedFile& file, std::uint64_t offset, std::size_t count) {
  std::string text(count, '?');
  file.read(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

TEST(StreamedFile, ReadsWhereItIsAsked) {
  const TempFolder folder;
  const StreamedFile file(folder.write("a.txt", "hello world"));
  EXPECT_EQ(file.size(), 11u);
  EXPECT_EQ(text_at(file, 6, 5), "world");
  EXPECT_EQ(text_at(file, 0, 2), "he");
}

TEST(StreamedFile, GoesOnAfterShortReads) {
  const TempFolder folder;
  const std::string text(5000, 'x');
  const StreamedFile file(folder.write("a.txt", text));
  FaultyFileSystem faulty;
  faulty.set_longest_transfer(7);
  const ScopedFileSystem scope(faulty);
  EXPECT_EQ(text_at(file, 1, 4999), text.substr(1));
}

TEST(StreamedFile, SaysWhenTheFileWasShortenedOrCannotBeRead) {
  const TempFolder folder;
  const std::string path = folder.write("a.txt", "hello");
  const StreamedFile file(path);
  expect_error(Code::kFileRead, "ends at byte 5", [&] { text_at(file, 3, 4); });
  FaultyFileSystem faulty;
  faulty.fail(FileCall::kRead, 1, EIO);
  const ScopedFileSystem scope(faulty);
  expect_error(Code::kFileRead, "a.txt", [&] { text_at(file, 0, 1); });
  expect_error(Code::kFileOpen, "folder", [&] { StreamedFile(folder.path()); });
  expect_error(Code::kFileOpen, "b.txt", [&] { StreamedFile(folder / "b.txt"); });
}

TEST(StreamedFile, ScratchIsReadBackAndLeavesNothing) {
  const TempFolder folder;
  ASSERT_EQ(::setenv("TMPDIR", folder.path().c_str(), 1), 0);
  StreamedFile file = StreamedFile::scratch();
  ASSERT_EQ(::unsetenv("TMPDIR"), 0);
  file.append(bytes_of("hello "));
  file.append(bytes_of("world"));
  const StreamedFile moved(std::move(file));
  EXPECT_EQ(text_at(moved, 4, 4), "o wo");
  EXPECT_EQ(folder.names(), std::vector<std::string>{});
}

TEST(StreamedFile, FullDiskIsSaid) {
  StreamedFile file = StreamedFile::scratch();
  FaultyFileSystem faulty;
  faulty.set_disk_space(8);
  const ScopedFileSystem scope(faulty);
  expect_error(Code::kFileWrite, "No space", [&] { file.append(bytes_of("hello world")); });
}

TEST(StreamedFile, PipeIsCopiedToScratch) {
  const TempFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const std::string text(300'000, 'p');
  std::thread writer([&] {
    const int pipe = ::open(path.c_str(), O_WRONLY);
    for (std::size_t at = 0; at < text.size();) at += static_cast<std::size_t>(::write(pipe, text.data() + at, text.size() - at));
    ::close(pipe);
  });
  const StreamedFile file(path);
  writer.join();
  EXPECT_EQ(text_at(file, 0, file.size()), text);
}

}  // namespace
}  // namespace hone
