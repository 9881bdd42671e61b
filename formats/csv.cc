#include "formats/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/diag.h"
#include "base/text.h"

namespace hone {

namespace {

constexpr std::size_t kCsvBlockBytes = 64 * 1024;

/// What a number that f64 has no room for is there: 0 or infinity, as everywhere.
double rounded(std::string_view number) {
  const bool negative = number.starts_with('-');
  const std::size_t e = std::min(number.find_first_of("eE"), number.size()), point = std::min(number.find('.'), e), first = number.find_first_of("123456789");
  std::int64_t power = 0;  // of ten
  if (e < number.size()) {
    const std::string_view digits = number.substr(e + (number.substr(e + 1).starts_with('+') ? 2 : 1));
    if (std::from_chars(digits.data(), digits.data() + digits.size(), power).ec != std::errc{}) power = digits.starts_with('-') ? INT32_MIN : INT32_MAX;
  }
  const std::int64_t place = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);  // of the first digit, from the point to the left
  const double size = place + std::clamp<std::int64_t>(power, INT32_MIN, INT32_MAX) > 0 ? std::numeric_limits<double>::infinity() : 0;
  return negative ? -size : size;
}

template <typename T>
std::optional<T> number_of(std::string_view field) {
  field = trim(field);
  if (field.starts_with('+')) field.remove_prefix(1);
  T number{};
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  if (end != field.data() + field.size()) return std::nullopt;
  if constexpr (std::is_same_v<T, double>)
    if (error == std::errc::result_out_of_range) return rounded(field);
  if (error != std::errc{}) return std::nullopt;
  return number;
}

/// What programs write where there is no value.
bool is_missing(std::string_view field) {
  constexpr std::string_view kWords[] = {"", "?", "-", "na", "n/a", "#n/a", "<na>", "null", "none", "missing"};  // nan is a number
  return std::ranges::find(kWords, lower_case(trim(field))) != std::end(kWords);
}

bool is_number(std::string_view field) { return number_of<double>(field).has_value(); }

/// A word that may name a column: an empty one, too, as pandas has it above row numbers.
bool may_be_name(std::string_view field) { return not is_number(field) and (trim(field).empty() or not is_missing(field)); }

/// Are the integers among them 0, 1, 2, ... or 1, 2, 3, ..., two at least, and all others no numbers?
bool counts_up(const std::vector<std::string>& fields) {
  std::optional<std::int64_t> first;
  std::int64_t count = 0;
  for (const std::string& field : fields) {
    if (not is_number(field)) continue;
    const auto number = number_of<std::int64_t>(field);
    if (not number or *number != first.value_or(*number) + count) return false;
    if (not first) first = number;
    ++count;
  }
  return count > 1 and (*first == 0 or *first == 1);
}

template <typename T>
void put(std::vector<std::byte>& block, T number) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&number);
  block.insert(block.end(), bytes, bytes + sizeof(number));
}

}  // namespace

CsvTable::CsvTable(const StreamedFile& file, const std::string& columns) : file_(file) {
  CsvRecords records(file);
  bool more = records.next();
  if (more) {
    field_count_ = records.fields().size();
    choose_columns(columns, records);
    has_header_ = by_name_ or first_is_header(records.fields());
    begins_with_count_ = not has_header_ and field_count_ > 2 and std::ranges::all_of(records.fields(), is_number) and counts_up(records.fields());
    if (has_header_) names_ = records.fields(), more = records.next();
  }
  for (; more; more = records.next()) {
    check_record(records);
    ++row_count_;
  }
  if (row_count_ == 0) throw Error(Code::kDataLength, fmt::format("{} has no rows", printable(file.path(), 1000)), {}, {"give at least one line of numbers"});
}

std::size_t CsvTable::position_of(std::string_view column, const std::vector<std::string>& header) {
  const std::string_view name = trim(column);
  if (const auto number = number_of<std::int64_t>(name)) {
    const auto count = static_cast<std::int64_t>(header.size());
    if (*number >= count or *number < -count)
      throw Error(Code::kDataName, fmt::format("{} has {} columns, and number {} is asked for", printable(file_.path(), 1000), count, *number), {},
                  {"columns count from 0; -1 is the last one"});
    return static_cast<std::size_t>(*number < 0 ? *number + count : *number);
  }
  by_name_ = true;
  std::vector<std::string> names;
  for (const std::string& field : header) names.emplace_back(trim(field));
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) found.push_back(i);
  if (found.size() == 1) return found[0];
  if (not found.empty())
    throw Error(Code::kDataName, fmt::format("{} has {} columns {}: the numbers {}", printable(file_.path(), 1000), found.size(), quoted(name), fmt::join(found, ", ")), {},
                {fmt::format("choose one by its number: {}:{}", printable(file_.path(), 1000), found[0])});
  constexpr std::size_t kListed = 20;
  const bool all = names.size() <= kListed;
  std::vector<std::string> notes = {fmt::format("its first line has {}{}", quoted_list(std::span(names).first(all ? names.size() : kListed)),
                                                all ? "" : fmt::format(" and {} more", names.size() - kListed))};
  const auto is_column = [&](std::string_view part) { return std::ranges::find(names, part) != names.end() or number_of<std::int64_t>(part); };
  const std::size_t middle = std::min(name.find_first_of("-:"), name.size());
  if (middle + 1 < name.size() and is_column(name.substr(0, middle)) and is_column(name.substr(middle + 1)))
    notes.insert(notes.begin(), fmt::format("a range is written with two dots, both ends included: {}..{}", printable(name.substr(0, middle)), printable(name.substr(middle + 1))));
  else if (const std::string hint = did_you_mean(name, names); not hint.empty()) notes.insert(notes.begin(), hint);
  throw Error(Code::kDataName, fmt::format("{} has no column {}", printable(file_.path(), 1000), quoted(name)), {}, std::move(notes));
}

void CsvTable::choose_columns(const std::string& columns, const CsvRecords& first) {
  const std::vector<std::string>& header = first.fields();
  for (const std::string& item : split(columns.empty() ? "0..-1" : columns, ',')) {
    const std::size_t dots = item.find("..");
    const std::size_t begin = position_of(item.substr(0, dots), header);
    const std::size_t end = dots == std::string::npos ? begin : position_of(item.substr(dots + 2), header);
    if (end < begin)
      throw Error(Code::kDataName, fmt::format("{}: the columns {} run backwards", printable(file_.path(), 1000), quoted(item)), {},
                  {"write the left one first; both belong to the range"});
    for (std::size_t column = begin; column <= end; ++column) columns_.push_back(column);
  }
}

bool CsvTable::first_is_header(const std::vector<std::string>& fields) const {
  if (std::ranges::none_of(columns_, [&](std::size_t column) { return is_number(fields[column]); }))
    return std::ranges::any_of(columns_, [&](std::size_t column) { return may_be_name(fields[column]); });
  return counts_up(fields) and second_has_number_below_word(fields);
}

bool CsvTable::second_has_number_below_word(const std::vector<std::string>& first) const {
  CsvRecords records(file_);
  if (not records.next() or not records.next() or records.fields().size() != first.size()) return false;
  for (std::size_t column = 0; column < first.size(); ++column)
    if (may_be_name(first[column]) and is_number(records.fields()[column])) return true;
  return false;
}

void CsvTable::refuse_field(const CsvRecords& records, std::size_t column) const {
  const std::string& field = records.fields()[column];
  const std::string which = names_.empty() ? fmt::format("column {}", column) : fmt::format("column {} ({})", column, quoted(trim(names_[column])));
  throw Error(Code::kDataFormat,
              fmt::format("{}: line {}: {} {}", printable(file_.path(), 1000), records.line(), which,
                          trim(field).empty() ? "is empty" : "holds " + quoted(field) + ", which is no number"),
              {},
              {is_missing(field) ? "put a number where a value is missing, or leave such lines out: with pandas, frame.fillna(0) or frame.dropna()"
                                 : "choose other columns with FILE.csv:COLUMNS, or number the words first: with pandas, frame[\"species\"].astype(\"category\").cat.codes"});
}

void CsvTable::check_record(const CsvRecords& records) {
  const std::vector<std::string>& fields = records.fields();
  if (fields.size() != field_count_)
    throw Error(Code::kDataFormat,
                fmt::format("{}: line {} has {} fields, and the first line has {}", printable(file_.path(), 1000), records.line(), fields.size(), field_count_),
                {}, {"every line needs the same number; a field that holds the separator is put in double quotes"});
  for (const std::size_t column : columns_) {
    if (not is_number(fields[column])) refuse_field(records, column);
    if (dtype_ == DType::kI64 and not number_of<std::int64_t>(fields[column])) dtype_ = DType::kF64;
  }
}

std::int64_t CsvTable::line_of(std::int64_t row) const {
  CsvRecords records(file_);
  for (std::int64_t i = has_header_ ? -1 : 0; i <= row and records.next(); ++i) continue;
  return records.line();
}

void CsvTable::read(const std::function<void(std::span<const std::byte>)>& take) const {
  CsvRecords records(file_);
  if (has_header_) records.next();
  std::vector<std::byte> block;
  for (std::int64_t row = 0; row < row_count_; ++row) {
    if (not records.next() or records.fields().size() != field_count_)
      throw Error(Code::kFileRead, fmt::format("cannot read {}: it has changed while it was read", printable(file_.path(), 1000)), {},
                  {"run the command again"});
    for (const std::size_t column : columns_) {
      const std::string& field = records.fields()[column];
      if (dtype_ == DType::kI64) put(block, number_of<std::int64_t>(field).value_or(0));
      else put(block, number_of<double>(field).value_or(0));
    }
    if (block.size() >= kCsvBlockBytes) {
      take(block);
      block.clear();
    }
  }
  take(block);
}

}  // namespace hone
