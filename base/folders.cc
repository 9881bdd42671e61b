// Folders, names and the messages about both.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/file_errors.h"
#include "base/file_system.h"
#include "base/files.h"
#include "base/text.h"

namespace hone {

namespace {

/// What is missing on the way to `path`, and what it could have been meant to be.
std::string missing_note(const std::string& path) {
  std::error_code is_no_link;
  if (const std::filesystem::path leads_to = std::filesystem::read_symlink(path, is_no_link); not is_no_link)
    return fmt::format("it is a symbolic link to {}, which is not there", quoted(leads_to.string()));
  std::string folder = folder_of(path);
  std::string name = file_name_of(path);
  struct stat status {};
  while (folder != "." and folder != "/" and file_system().stat_path(folder, &status) != 0) {
    name = file_name_of(folder);
    folder = folder_of(folder);
  }
  const bool file_is_missing = name == file_name_of(path);
  std::vector<std::string> names;
  if (file_system().list_folder(folder, &names) != 0) return "";
  std::sort(names.begin(), names.end());
  const std::string place = folder == "." ? "the current folder" : quoted(folder);
  std::string note = fmt::format("there is no {}{} in {}", file_is_missing ? "" : "folder ", quoted(name), place);
  if (const auto similar = nearest(name, names))
    note += fmt::format("; did you mean {}?", quoted(folder == "." ? *similar : folder == "/" ? "/" + *similar : folder + "/" + *similar));
  return note;
}

std::string way_out(const std::string& path, int error) {
  switch (error) {
    case ENOENT: return path.empty() ? "its name is empty" : missing_note(path);
    case EACCES:
    case EPERM: return "check who may read and write the file and its folder (ls -l)";
    case ENOSPC: return "free some space on that disk, or choose a place on another one; the file that was there is unchanged";
    case EDQUOT: return "your disk quota is used up: remove files of yours, or choose a place on another disk";
    case EROFS: return "that disk cannot be written to; choose another place";
    case EIO: return "the disk itself reports a failure (see dmesg); choose a place on another one";
    case EFBIG: return "the disk's format or `ulimit -f` does not allow files of that size";
    case EMFILE:
    case ENFILE: return "too many files are open at once; raise `ulimit -n`";
    case EISDIR: return "name a file in that folder";
    case EEXIST:
    case ENOTDIR: return "a part of the path is a file, not a folder";
    case ENAMETOOLONG: return "choose a shorter name";
    case ELOOP: return "a symbolic link in the path leads back to itself (ls -l)";
    default: return "that is what the system says; look at the file, its folder and its disk (ls -l, df -h)";
  }
}

[[noreturn]] void fail_write(const std::string& action, const std::string& path, int error) { throw file_error(Code::kFileWrite, action, path, error); }

}  // namespace

Error file_error(Code code, const std::string& action, const std::string& path, int error) {
  std::vector<std::string> notes;
  if (std::string note = way_out(path, error); not note.empty()) notes.push_back(std::move(note));
  const std::string reason = std::generic_category().message(error);
  const std::string what = path == "-" ? (code == Code::kFileWrite ? "standard output" : "standard input") : path.empty() ? quoted(path) : printable(path, 1000);
  return Error(code, fmt::format("cannot {} {}: {}", action, what, reason), {}, std::move(notes));
}

std::string folder_of(const std::string& path) {
  std::size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path.empty() ? "." : "/";
  end = path.rfind('/', end);
  if (end == std::string::npos) return ".";
  end = path.find_last_not_of('/', end);
  return end == std::string::npos ? "/" : path.substr(0, end + 1);
}

std::string file_name_of(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path.empty() ? "" : "/";
  const std::size_t slash = path.rfind('/', end);
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(begin, end + 1 - begin);
}

bool file_exists(const std::string& path) {
  struct stat status {};
  return file_system().stat_path(path, &status) == 0;
}

bool is_folder(const std::string& path) {
  struct stat status {};
  return file_system().stat_path(path, &status) == 0 and S_ISDIR(status.st_mode);
}

std::vector<std::string> list_folder(const std::string& path) {
  std::vector<std::string> names;
  if (file_system().list_folder(path, &names) != 0) throw file_error(Code::kFileOpen, "list the folder", path, errno);
  std::sort(names.begin(), names.end());
  return names;
}

void make_folders(const std::string& path) {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (part.empty() or is_folder(part)) continue;
    if (file_system().make_folder(part) != 0 and not(errno == EEXIST and is_folder(part))) fail_write("make the folder", part, errno);
  }
}

void sync_folder(const std::string& path) {
  const int file = file_system().open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (file < 0) {
    if (errno == EACCES) return;  // a folder that may be written but not read cannot be synced by us
    fail_write("open the folder", path, errno);
  }
  const bool synced = file_system().sync(file) == 0;
  const int error = errno;
  file_system().close(file);
  if (not synced and error != EINVAL and error != ENOTSUP) fail_write("sync the folder", path, error);  // those: no such thing on this disk
}

void rename_durably(const std::string& from, const std::string& to) {
  if (file_system().rename(from, to) != 0) fail_write(fmt::format("rename {} to", printable(from, 1000)), to, errno);
  sync_folder(folder_of(to));
}

void remove_file(const std::string& path) {
  if (file_system().remove(path) != 0 and errno != ENOENT) fail_write("remove", path, errno);
}

void remove_tree(const std::string& path) {
  std::vector<std::string> waiting = {path};
  std::vector<std::string> folders;  // each before what is in it
  while (not waiting.empty()) {
    const std::string current = std::move(waiting.back());
    waiting.pop_back();
    struct stat status {};
    if (file_system().stat_link(current, &status) != 0) {
      if (errno == ENOENT) continue;
      fail_write("remove", current, errno);
    }
    if (not S_ISDIR(status.st_mode)) {
      remove_file(current);
      continue;
    }
    folders.push_back(current);
    for (const std::string& name : list_folder(current)) waiting.push_back(current + "/" + name);
  }
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder)
    if (file_system().remove_folder(*folder) != 0 and errno != ENOENT) fail_write("remove the folder", *folder, errno);
}

}  // namespace hone
