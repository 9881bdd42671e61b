// Tar archives, as WebDataset writes them: which files are in one and where their bytes lie. POSIX (ustar, pax) and GNU headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/streamed_file.h"

namespace hone {

/// One file in the archive.
struct TarMember {
  std::string name;
  std::uint64_t offset = 0;  ///< of its first byte in the archive
  std::uint64_t bytes = 0;
  std::string_view stands_for = {};  ///< "a hard link", "a symbolic link", "a sparse file": then its bytes are not its contents
};

/// Goes through an archive from front to back, in bounded memory. The file outlives it.
class TarReader {
 public:
  explicit TarReader(const StreamedFile& file) : file_(file) {}

  /// The next file or link; nothing at the end. Folders and devices are passed over. Throws kDataFormat: not a tar archive (or a compressed one), a
  /// header with a wrong checksum, a file that would lie beyond the end, an archive cut off.
  std::optional<TarMember> next();

  /// Has the end come where an archive's own end mark, a block of zeros, is missing? It may have been cut off between two files then.
  bool lacks_end_mark() const { return lacks_end_mark_; }

 private:
  [[noreturn]] void damaged(const std::string& why) const;
  std::string long_name(std::uint64_t offset, std::uint64_t bytes) const;
  /// What an extended header says of the file behind it.
  struct Extended {
    std::string path;
    bool is_sparse = false;
  };
  Extended extended(const std::string& records) const;

  const StreamedFile& file_;
  std::uint64_t at_ = 0;
  bool lacks_end_mark_ = false;
};

}  // namespace hone
