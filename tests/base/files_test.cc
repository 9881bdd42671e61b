#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/diag.h"
#include "base/file_system.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using test::TempFolder;
using Names = std::vector<std::string>;

std::string big_text() {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + "\n";
  return text;
}

TEST(MappedFile, SeesTheBytes) {
  const TempFolder folder;
  const MappedFile file(folder.write("a.txt", "hello"));
  EXPECT_EQ(file.text(), "hello");
  EXPECT_EQ(file.size(), 5u);
}

TEST(MappedFile, EmptyFileHasNoBytes) {
  const TempFolder folder;
  EXPECT_EQ(MappedFile(folder.write("a.txt", "")).size(), 0u);
}

TEST(MappedFile, MovesWithItsBytes) {
  const TempFolder folder;
  MappedFile file(folder.write("a.txt", "hello"));
  MappedFile other(folder.write("b.txt", "bye"));
  other = std::move(file);
  EXPECT_EQ(other.text(), "hello");
  const MappedFile last(std::move(other));
  EXPECT_EQ(last.text(), "hello");
}

TEST(MappedFile, ReadsWhatCannotBeMapped) {
  const TempFolder folder;
  const std::string text = big_text();
  const std::string path = folder.write("a.txt", text);
  FaultyFileSystem faulty;
  faulty.fail(FileCall::kMap, 1, ENODEV);
  faulty.set_longest_transfer(777);
  const ScopedFileSystem scope(faulty);
  EXPECT_EQ(MappedFile(path).text(), text);
}

TEST(MappedFile, ReadsPipes) {
  const TempFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const std::string text = big_text();
  std::thread writer([&] { folder.write("pipe", text); });
  const MappedFile file(path);
  writer.join();
  EXPECT_EQ(file.text(), text);
}

TEST(MappedFile, MissingFileNamesASimilarOne) {
  const TempFolder folder;
  folder.write("mnist.onnx", "x");
  expect_error(Code::kFileOpen, "No such file or directory", [&] { MappedFile(folder / "minst.onnx"); });
  expect_error(Code::kFileOpen, "did you mean", [&] { MappedFile(folder / "minst.onnx"); });
  expect_error(Code::kFileOpen, "/mnist.onnx\"?", [&] { MappedFile(folder / "minst.onnx"); });
}

TEST(MappedFile, ALinkToNothingAndNoNameAreSaid) {
  const TempFolder folder;
  std::filesystem::create_symlink("gone.npy", folder / "link.npy");
  expect_error(Code::kFileOpen, "it is a symbolic link to \"gone.npy\", which is not there", [&] { MappedFile(folder / "link.npy"); });
  expect_error(Code::kFileOpen, "cannot open \"\": No such file or directory\n  note: its name is empty", [] { MappedFile(""); });
}

TEST(MappedFile, MissingFolderIsNamed) {
  const TempFolder folder;
  make_folders(folder / "models/big");
  expect_error(Code::kFileOpen, "there is no folder \"modles\"", [&] { MappedFile(folder / "modles/big/a.onnx"); });
  expect_error(Code::kFileOpen, "/models\"?", [&] { MappedFile(folder / "modles/big/a.onnx"); });
}

TEST(MappedFile, FolderIsNoFile) {
  const TempFolder folder;
  expect_error(Code::kFileOpen, "Is a directory", [&] { MappedFile(folder.path()); });
}

TEST(MappedFile, EveryFailureIsAnError) {
  const TempFolder folder;
  const std::string path = folder.write("a.txt", "hello");
  for (const FileCall call : {FileCall::kOpen, FileCall::kStat, FileCall::kRead}) {
    FaultyFileSystem faulty;
    faulty.fail(call, 1, EIO);
    faulty.fail(FileCall::kMap, 1, ENODEV);
    const ScopedFileSystem scope(faulty);
    expect_error(call == FileCall::kOpen ? Code::kFileOpen : Code::kFileRead, "Input/output error", [&] { MappedFile{path}; });
  }
}

TEST(MappedFile, GoesOnAfterASignal) {
  const TempFolder folder;
  const std::string path = folder.write("a.txt", "hello");
  FaultyFileSystem faulty;
  faulty.fail(FileCall::kOpen, 1, EINTR);
  faulty.fail(FileCall::kRead, 1, EINTR);
  faulty.fail(FileCall::kMap, 1, ENODEV);
  const ScopedFileSystem scope(faulty);
  EXPECT_EQ(MappedFile(path).text(), "hello");
}

TEST(ReadFile, RefusesWhatIsTooLong) {
  const TempFolder folder;
  const std::string path = folder.write("a.txt", "hello");
  EXPECT_EQ(read_file(path, 5), "hello");
  expect_error(Code::kTooLarge, "is 5 B long; at most 4 B", [&] { read_file(path, 4); });
}

TEST(AtomicFile, ReplacesTheFile) {
  const TempFolder folder;
  const std::string path = folder.write("a.txt", "old");
  write_file_atomically(path, [](AtomicFile& file) {
    file.write("header__");
    file.write("body");
    file.pad_to(8);
    EXPECT_EQ(file.position(), 16u);
    file.write_at(6, std::as_bytes(std::span("!!", 2)));
    file.write("end");
  });
  EXPECT_EQ(folder.read("a.txt"), std::string("header!!body\0\0\0\0end", 19));
  EXPECT_EQ(folder.names(), Names{"a.txt"});
}

TEST(AtomicFile, WritesMuch) {
  const TempFolder folder;
  const std::string text = big_text();
  FaultyFileSystem faulty;
  faulty.set_longest_transfer(1000);
  const ScopedFileSystem scope(faulty);
  write_file_atomically(folder / "a.txt", text);
  EXPECT_EQ(folder.read("a.txt"), text);
}

TEST(AtomicFile, KeepsTheMode) {
  const TempFolder folder;
  const std::string path = folder.write("a.txt", "old");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  write_file_atomically(path, std::string_view("new"));
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

TEST(AtomicFile, WithoutCommitNothingHappens) {
  const TempFolder folder;
  const std::string path = folder.write("a.txt", "old");
  EXPECT_THROW(write_file_atomically(path,
                                     [](AtomicFile& file) {
                                       file.write("new");
                                       throw std::runtime_error("stop");
                                     }),
               std::runtime_error);
  EXPECT_EQ(folder.read("a.txt"), "old");
  EXPECT_EQ(folder.names(), Names{"a.txt"});
}

TEST(AtomicFile, KeepsALink) {
  const TempFolder folder;
  folder.write("real.txt", "old");
  std::filesystem::create_symlink("real.txt", folder / "link.txt");
  write_file_atomically(folder / "link.txt", std::string_view("new"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.txt"));
  EXPECT_EQ(folder.read("real.txt"), "new");
}

TEST(AtomicFile, MakesWhatALinkLeadsTo) {
  const TempFolder folder;
  make_folders(folder / "there");
  std::filesystem::create_symlink("there/second", folder / "link.txt");
  std::filesystem::create_symlink("new.txt", folder / "there/second");
  write_file_atomically(folder / "link.txt", std::string_view("new"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.txt"));
  EXPECT_EQ(folder.read("there/new.txt"), "new");
  std::filesystem::create_symlink("no/folder", folder / "lost.txt");
  expect_error(Code::kFileOpen, "it is a symbolic link to \"no/folder\", which is not there", [&] { AtomicFile(folder / "lost.txt"); });
  expect_error(Code::kFileOpen, "its name is empty", [] { AtomicFile(""); });
}

TEST(AtomicFile, WritesThroughWhatIsNoFile) {
  write_file_atomically("/dev/null", std::string_view("gone"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(AtomicFile, AcceptsTheLongestNames) {
  const TempFolder folder;
  const std::string name(255, 'n');
  write_file_atomically(folder / name, std::string_view("x"));
  EXPECT_EQ(folder.names(), Names{name});
  expect_error(Code::kFileOpen, "shorter name", [&] { AtomicFile(folder / (name + "n")); });
}

// Whatever call fails, the file holds the old or the new content, and nothing else is left in the folder.
TEST(AtomicFile, AnyFailingCallLeavesOldOrNew) {
  const std::string text = big_text();
  int call_count = 0;
  {
    const TempFolder folder;
    const std::string path = folder.write("a.txt", "old");
    FaultyFileSystem counting;
    const ScopedFileSystem scope(counting);
    write_file_atomically(path, text);
    call_count = counting.calls();
  }
  ASSERT_GE(call_count, 7);
  int kept_old = 0;
  for (int nth = 1; nth <= call_count; ++nth) {
    for (const int error : {ENOSPC, EIO, EACCES}) {
      const TempFolder folder;
      const std::string path = folder.write("a.txt", "old");
      FaultyFileSystem faulty;
      faulty.fail_any(nth, error);
      bool failed = false;
      {
        const ScopedFileSystem scope(faulty);
        try {
          write_file_atomically(path, text);
        } catch (const Error& thrown) {
          failed = true;
          EXPECT_TRUE(thrown.exit_code() == 7) << thrown.what();
        }
      }
      const std::string content = folder.read("a.txt");
      EXPECT_TRUE(content == (failed ? "old" : text) or content == text) << "call " << nth;
      EXPECT_EQ(folder.names(), Names{"a.txt"}) << "call " << nth;
      kept_old += content == "old" ? 1 : 0;
    }
  }
  EXPECT_GE(kept_old, 3 * (call_count - 4));
}

TEST(AtomicFile, FullDiskAtEveryByte) {
  const std::string text(100, 'x');
  for (std::uint64_t space = 0; space < text.size(); ++space) {
    const TempFolder folder;
    const std::string path = folder.write("a.txt", "old");
    FaultyFileSystem faulty;
    faulty.set_disk_space(space);
    const ScopedFileSystem scope(faulty);
    expect_error(Code::kFileWrite, "No space left on device", [&] { write_file_atomically(path, text); });
    EXPECT_EQ(folder.read("a.txt"), "old");
    EXPECT_EQ(folder.names(), Names{"a.txt"});
  }
}

TEST(AtomicFile, FailingCloseIsAnError) {
  const TempFolder folder;
  const std::string path = folder.write("a.txt", "old");
  FaultyFileSystem faulty;
  faulty.fail(FileCall::kClose, 1, EIO);
  const ScopedFileSystem scope(faulty);
  expect_error(Code::kFileWrite, "Input/output error", [&] { write_file_atomically(path, std::string_view("new")); });
  EXPECT_EQ(folder.read("a.txt"), "old");
  EXPECT_EQ(folder.names(), Names{"a.txt"});
}

TEST(AtomicFile, SaysWhatCannotBeOpened) {
  const TempFolder folder;
  expect_error(Code::kFileOpen, "there is no folder \"no\"", [&] { AtomicFile(folder / "no/a.txt"); });
  expect_error(Code::kFileOpen, "Is a directory", [&] { AtomicFile(folder.path()); });
  folder.write("file", "");
  expect_error(Code::kFileOpen, "a file, not a folder", [&] { AtomicFile(folder / "file/a.txt"); });
}

TEST(LogFile, AppendsLines) {
  const TempFolder folder;
  {
    LogFile log(folder / "log");
    log.append("one");
    log.append("two");
    log.sync();
  }
  LogFile(folder / "log").append("three");
  EXPECT_EQ(folder.read("log"), "one\ntwo\nthree\n");
}

TEST(LogFile, CutsOffAnUnfinishedLine) {
  const TempFolder folder;
  LogFile(folder.write("a", "one\ntw")).append("2");
  EXPECT_EQ(folder.read("a"), "one\n2\n");
  LogFile(folder.write("b", "on")).append("1");
  EXPECT_EQ(folder.read("b"), "1\n");
}

TEST(LogFile, TakesBackAHalfWrittenLine) {
  const TempFolder folder;
  FaultyFileSystem faulty;
  faulty.set_disk_space(6);
  const ScopedFileSystem scope(faulty);
  LogFile log(folder / "log");
  log.append("one");
  expect_error(Code::kFileWrite, "No space left", [&] { log.append("two"); });
  EXPECT_EQ(folder.read("log"), "one\n");
}

TEST(LogFile, EveryFailureIsAnError) {
  for (int nth = 1; nth <= 5; ++nth) {
    const TempFolder folder;
    const std::string path = folder.write("log", "one\ntw");
    FaultyFileSystem faulty;
    faulty.fail_any(nth, EIO);
    const ScopedFileSystem scope(faulty);
    EXPECT_THROW(LogFile(path).append("x"), Error) << nth;
    EXPECT_EQ(folder.read("log").substr(0, 4), "one\n");
  }
}

TEST(Folders, PathsComeApart) {
  EXPECT_EQ(folder_of("a/b.onnx"), "a");
  EXPECT_EQ(folder_of("b.onnx"), ".");
  EXPECT_EQ(folder_of("/b"), "/");
  EXPECT_EQ(folder_of("a//b/"), "a");
  EXPECT_EQ(folder_of("/"), "/");
  EXPECT_EQ(folder_of(""), ".");
  EXPECT_EQ(file_name_of("a/b.onnx"), "b.onnx");
  EXPECT_EQ(file_name_of("b.onnx"), "b.onnx");
  EXPECT_EQ(file_name_of("a/b/"), "b");
}

TEST(Folders, MakeListRenameRemove) {
  const TempFolder folder;
  make_folders(folder / "a/b/c");
  make_folders(folder / "a/b/c");
  folder.write("a/b/file", "x");
  EXPECT_EQ(list_folder(folder / "a/b"), (Names{"c", "file"}));
  EXPECT_TRUE(is_folder(folder / "a"));
  EXPECT_FALSE(is_folder(folder / "a/b/file"));
  EXPECT_TRUE(file_exists(folder / "a/b/file"));
  rename_durably(folder / "a", folder / "z");
  EXPECT_EQ(folder.names(), Names{"z"});
  remove_tree(folder / "z");
  remove_tree(folder / "z");
  remove_file(folder / "z");
  EXPECT_TRUE(folder.names().empty());
  expect_error(Code::kFileOpen, "cannot list", [&] { list_folder(folder / "z"); });
  folder.write("file", "");
  expect_error(Code::kFileWrite, "cannot make the folder", [&] { make_folders(folder / "file/a"); });
}

TEST(Folders, RemoveTreeFollowsNoLink) {
  const TempFolder folder;
  make_folders(folder / "tree");
  make_folders(folder / "kept");
  folder.write("kept/file", "x");
  std::filesystem::create_directory_symlink(folder / "kept", folder / "tree/link");
  remove_tree(folder / "tree");
  EXPECT_EQ(folder.names(), Names{"kept"});
  EXPECT_EQ(folder.read("kept/file"), "x");
}

}  // namespace
}  // namespace hone
