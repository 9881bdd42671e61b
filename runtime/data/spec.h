// What a user names on the command line: NAME=FILE[:PART][[FIRST:LAST]][,NAME=FILE...].
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

enum class FileKind { kNpy, kNpz, kIdx, kRaw, kCsv, kSafetensors, kTar };

/// One array of the data: which input it is for, and where it lies.
struct DataSource {
  std::string name;  ///< as given: an ONNX input's name, x, y or target
  std::string input = {};  ///< the input's own name, where x, y or target stands for it and that is known
  std::string path;  ///< with "*" or "?" in its last name: all such files, in the order of their names, one behind the other
  std::string part;  ///< behind the path: the key in an .npz file, "f32:60000x784" of a raw file, the columns of a .csv file, ...
  FileKind kind = FileKind::kNpy;
  std::int64_t first_row = 0;           ///< "[8000:10000]" behind it all: only these rows, the last one left out
  std::optional<std::int64_t> end_row;  ///< nothing: all from first_row
};

/// Reads `--train`, `--valid`, `--data` or `--in` (`flag`, for messages), each item a list of NAME=FILE[:PART] with commas between. The kind of a file
/// follows from its name: .npy, .npz:KEY, *-ubyte, .idx (also .gz), .csv:COLUMNS, .safetensors:TENSOR, .tar:ENDING, .bin:DTYPE:SHAPE and what else .bin can
/// be (docs/data.md has them all); rows are chosen as in images.npy[0:8000]. Names and parts may hold colons and slashes: what is there as a file is the file. Throws Error kUsage (no NAME=FILE, a name twice, a kind of file that is not known,
/// a part missing or out of place), all problems at once.
std::vector<DataSource> parse_data(std::string_view flag, std::span<const std::string> items);

}  // namespace hone
