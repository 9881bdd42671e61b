#include "runtime/data/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/diag.h"
#include "base/files.h"
#include "base/text.h"
#include "formats/idx.h"

namespace hone {

namespace {

struct KindOfName {
  std::string_view suffix;
  FileKind kind;
};
constexpr KindOfName kKinds[] = {{".npy", FileKind::kNpy},
                                 {".npz", FileKind::kNpz},
                                 {".bin", FileKind::kRaw},
                                 {".raw", FileKind::kRaw},
                                 {".csv", FileKind::kCsv},
                                 {".tsv", FileKind::kCsv},
                                 {".safetensors", FileKind::kSafetensors},
                                 {".tar", FileKind::kTar}};

std::optional<FileKind> kind_of(const std::string& path) {
  if (path == "-") return FileKind::kNpy;
  if (is_idx_path(path)) return FileKind::kIdx;
  const std::string name = lower_case(path);
  for (const KindOfName& known : kKinds)
    if (name.ends_with(known.suffix)) return known.kind;
  return std::nullopt;
}

/// Pieces of a list: a comma starts a new one only where NAME= follows, so that file names may hold commas.
std::vector<std::string> pieces_of(const std::string& item) {
  std::vector<std::string> pieces;
  for (const std::string& piece : split(item, ',')) {
    const bool begins = piece.find('=') != std::string::npos or pieces.empty();
    if (begins) pieces.push_back(piece);
    else pieces.back() += "," + piece;
  }
  return pieces;
}

bool read_row_number(std::string_view text, std::int64_t* row) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *row);
  return error == std::errc{} and end == text.data() + text.size() and *row >= 0;
}

/// Takes "[FIRST:LAST]" off the end of `text`, if it ends so; either number may be missing.
void take_rows(std::string* text, DataSource* source) {
  const std::size_t open = text->rfind('[');
  if (open == std::string::npos or open == 0 or text->back() != ']') return;
  const std::string_view inside = std::string_view(*text).substr(open + 1, text->size() - open - 2);
  const std::size_t colon = inside.find(':');
  if (colon == std::string_view::npos) return;
  std::int64_t first = 0, last = 0;
  const std::string_view first_text = inside.substr(0, colon), last_text = inside.substr(colon + 1);
  if (not first_text.empty() and not read_row_number(first_text, &first)) return;
  if (not last_text.empty() and not read_row_number(last_text, &last)) return;
  source->first_row = first;
  if (not last_text.empty()) source->end_row = last;
  text->resize(open);
}

/// Path and part: files, folders and keys may all hold colons and slashes. The longest name that is a file's is the path; where there is none (yet, or a pattern), the part begins at the first colon behind a name whose kind is
/// known and before no slash, else at the first one behind such a name.
void split_path(std::string text, DataSource* source) {
  take_rows(&text, source);
  std::vector<std::size_t> ends;  // where the path may end
  for (std::size_t colon = text.find(':'); colon != std::string::npos; colon = text.find(':', colon + 1))
    if (kind_of(text.substr(0, colon))) ends.push_back(colon);
  if (ends.empty() or kind_of(text)) ends.push_back(text.size());
  const auto is_file = [&](std::size_t end) { return file_exists(text.substr(0, end)) and not is_folder(text.substr(0, end)); };
  const auto is_last_name = [&](std::size_t end) { return text.find('/', end) == std::string::npos; };
  const auto longest = std::find_if(ends.rbegin(), ends.rend(), is_file);
  const auto likeliest = std::ranges::find_if(ends, is_last_name);
  const std::size_t end = longest != ends.rend() ? *longest : likeliest != ends.end() ? *likeliest : ends[0];
  source->path = text.substr(0, end);
  if (end < text.size()) source->part = text.substr(end + 1);
}

struct PartRule {
  FileKind kind;
  enum { kNone, kMay, kMust } part;  // what follows the colon
  const char* problem;
  const char* way_out;
};
constexpr PartRule kPartRules[] = {
    {FileKind::kNpy, PartRule::kNone, "such a file holds one array, so nothing can be chosen from it", "leave out what follows the colon"},
    {FileKind::kIdx, PartRule::kNone, "such a file holds one array, so nothing can be chosen from it", "leave out what follows the colon"},
    {FileKind::kNpz, PartRule::kMay, "", ""},
    {FileKind::kCsv, PartRule::kMay, "", ""},
    {FileKind::kSafetensors, PartRule::kMay, "", ""},
    {FileKind::kRaw, PartRule::kMust, "a raw file needs its element type and shape",
     "write FILE.bin:f32:60000x784; or FILE.bin:cifar10:images, FILE.bin:tokens:u16:128, see docs/data.md"},
    {FileKind::kTar, PartRule::kMust, "an archive needs to be told which of its files is meant", "write FILE.tar:cls for the files KEY.cls in it"},
};

const PartRule* broken_rule(const DataSource& source) {
  for (const PartRule& rule : kPartRules)
    if (rule.kind == source.kind and rule.part != PartRule::kMay and source.part.empty() != (rule.part == PartRule::kNone)) return &rule;
  return nullptr;
}

}  // namespace

std::vector<DataSource> parse_data(std::string_view flag, std::span<const std::string> items) {
  std::vector<DataSource> sources;
  Diags diags;
  const auto refuse = [&](const std::string& piece, std::string_view what, std::string note) {
    diags.error(Code::kUsage, fmt::format("{} {}: {}", flag, quoted(piece), what), {}, {std::move(note)});
  };
  for (const std::string& item : items) {
    for (const std::string& piece : pieces_of(item)) {
      const std::size_t equals = piece.find('=');
      if (equals == std::string::npos or trim(std::string_view(piece).substr(0, equals)).empty() or equals + 1 == piece.size()) {
        refuse(piece, "expected NAME=FILE", fmt::format("for example {} x=images.npy,y=labels.npy", flag));
        continue;
      }
      DataSource source;
      source.name = std::string(trim(std::string_view(piece).substr(0, equals)));  // "x=a.npy, y=b.npy"
      split_path(piece.substr(equals + 1), &source);
      const auto kind = kind_of(source.path);
      source.kind = kind.value_or(FileKind::kNpy);
      if (not kind)
        if (piece.find('[') != std::string::npos) refuse(piece, "these are no rows", "rows stand behind the file as [FIRST:LAST], whole numbers that count from 0, of which either may be left out: images.npy[0:8000], images.npy[8000:]");
        else refuse(piece, "the file's name does not tell what it is",
               "known are .npy, .npz:KEY, IDX (*-ubyte, .idx, also .gz), .csv:COLUMNS, .safetensors:TENSOR, .tar:ENDING and .bin:DTYPE:SHAPE; pictures are not decoded: make one array of them (numpy.save)");
      else if (const PartRule* rule = broken_rule(source)) refuse(piece, rule->problem, rule->way_out);
      if (std::any_of(sources.begin(), sources.end(), [&](const DataSource& other) { return other.name == source.name; }))
        refuse(piece, fmt::format("{} is given twice", quoted(source.name)), "name each input once");
      sources.push_back(std::move(source));
    }
  }
  diags.throw_if_errors();
  return sources;
}

}  // namespace hone
