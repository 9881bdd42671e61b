#include "formats/csv_records.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diag.h"
#include "base/text.h"

namespace hone {

namespace {

constexpr std::size_t kRecordBlockBytes = 256 * 1024;
constexpr std::size_t kMostFields = std::size_t{1} << 20;
constexpr std::size_t kRecordBytes = std::size_t{16} << 20;

/// The one that is most frequent in the first line with anything in it, outside of quotes.
char separator_of(std::string_view text) {
  std::size_t commas = 0, semicolons = 0, tabs = 0;
  bool is_quoted = false, is_empty = true;
  for (const char c : text) {
    if (c == '\n' and not is_quoted and not is_empty) break;
    is_empty = is_empty and (c == '\n' or c == '\r');
    if (c == '"') is_quoted = not is_quoted;
    if (is_quoted) continue;
    commas += c == ',';
    semicolons += c == ';';
    tabs += c == '\t';
  }
  if (tabs > std::max(commas, semicolons)) return '\t';
  return semicolons > commas ? ';' : ',';
}

}  // namespace

CsvRecords::CsvRecords(const StreamedFile& file) : file_(file) {
  fill();
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (block_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  if (block_.starts_with("\xff\xfe") or block_.starts_with("\xfe\xff"))
    throw Error(Code::kDataFormat, fmt::format("{} is text in UTF-16, and CSV files are read as UTF-8", printable(file_.path(), 1000)), {},
                {"save it as \"CSV UTF-8\", or: iconv -f UTF-16 -t UTF-8 FILE.csv > UTF8.csv"});
  const std::string_view start = std::string_view(block_).substr(at_);
  separator_ = separator_of(start);
}

bool CsvRecords::fill() {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kRecordBlockBytes, file_.size() - offset_));
  block_.resize(count);
  file_.read(offset_, std::as_writable_bytes(std::span(block_)));
  offset_ += count;
  at_ = 0;
  return count > 0;
}

int CsvRecords::peek() { return at_ < block_.size() or fill() ? static_cast<unsigned char>(block_[at_]) : kEnd; }

int CsvRecords::take() {
  const int c = peek();
  if (c != kEnd) ++at_, ++record_bytes_;
  if (c == '\n') ++lines_;
  return c;
}

std::string& CsvRecords::add_field() {
  if (field_count_ == kMostFields)
    throw Error(Code::kTooLarge, fmt::format("{}: line {} has more than {} fields", printable(file_.path(), 1000), line_, kMostFields), {}, {"is it a CSV file? Arrays of so many columns are better kept as .npy"});
  if (field_count_ == fields_.size()) fields_.emplace_back();
  std::string& field = fields_[field_count_++];
  field.clear();
  return field;
}

void CsvRecords::check_length() {
  if (record_bytes_ <= kRecordBytes) return;
  throw Error(Code::kTooLarge,
              fmt::format("{}: the record that begins on line {} is longer than {}", printable(file_.path(), 1000), line_, human_bytes(kRecordBytes)), {},
              {"look for a quote that is never closed"});
}

/// Returns what ended the field: the separator, a line end or the end.
int CsvRecords::read_plain(std::string& field, int c) {
  while (c != kEnd and c != separator_ and c != '\n') {
    field += static_cast<char>(c);
    check_length();
    c = take();
  }
  if (c != separator_ and field.ends_with('\r')) field.pop_back();
  return c;
}

int CsvRecords::read_quoted(std::string& field) {
  const std::int64_t begin = lines_;
  while (true) {
    const int c = take();
    if (c == kEnd)
      throw Error(Code::kDataFormat, fmt::format("{}: line {}: a quote that is never closed", printable(file_.path(), 1000), begin), {},
                  {"a quote within a quoted field is written twice"});
    check_length();
    if (c != '"') field += static_cast<char>(c);
    else if (peek() == '"') field += static_cast<char>(take());
    else break;
  }
  int c = take();
  if (c == '\r' and peek() == '\n') c = take();
  if (c != kEnd and c != separator_ and c != '\n')
    throw Error(Code::kDataFormat, fmt::format("{}: line {}: text behind the closing quote of a field", printable(file_.path(), 1000), lines_), {},
                {"a quote within a quoted field is written twice"});
  return c;
}

bool CsvRecords::next() {
  while (peek() == '\n' or peek() == '\r') take();
  if (peek() == kEnd) return false;
  line_ = lines_;
  record_bytes_ = field_count_ = 0;
  int end;
  do {
    std::string& field = add_field();
    const int first = take();
    end = first == '"' ? read_quoted(field) : read_plain(field, first);
  } while (end == separator_);
  fields_.resize(field_count_);
  return true;
}

}  // namespace hone
