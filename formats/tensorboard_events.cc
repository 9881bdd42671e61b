#include "formats/tensorboard_events.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>
#include <vector>

#include "base/text.h"
#include "formats/tensorboard_events.pb.h"

namespace hone {

namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr std::int64_t kLastSecond = 9'999'999'999;  // names have ten digits
constexpr std::size_t kBuckets = 30;

/// CRC-32C (Castagnoli) of each byte, reflected: polynomial 0x1EDC6F41.
constexpr std::array<std::uint32_t, 256> kCrcOfByte = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    table[byte] = crc;
  }
  return table;
}();

/// TFRecord's masked CRC: a file of checksums would otherwise have a checksum of its own that means nothing.
std::uint32_t masked_crc(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) crc = kCrcOfByte[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <typename Integer>
void append_little_endian(std::string* text, Integer value) {
  for (std::size_t i = 0; i < sizeof(value); ++i) *text += static_cast<char>(value >> (8 * i) & 0xff);
}

std::string tfrecord(std::string_view payload) {
  std::string record;
  append_little_endian(&record, static_cast<std::uint64_t>(payload.size()));
  append_little_endian(&record, masked_crc(record));
  record += payload;
  append_little_endian(&record, masked_crc(payload));
  return record;
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

void append(LogFile& file, tensorboard::Event& event) {
  event.set_wall_time(now());
  file.append_record(tfrecord(event.SerializeAsString()));
}

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 or name[0] == '\0') return "localhost";
  std::string result = name;
  std::replace(result.begin(), result.end(), '/', '_');
  return result;
}

/// Readers take the files of a folder by their names: the second in the name is behind that of every file there, also when the clock is not.
std::string new_file_name(const std::string& folder) {
  auto second = static_cast<std::int64_t>(now());
  for (const std::string& name : list_folder(folder)) {
    std::int64_t other = 0;
    if (not name.starts_with(kPrefix)) continue;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), other);
    if (other < kLastSecond) second = std::max(second, other + 1);
  }
  return fmt::format("{}/{}{:010}.{}.{}", folder, kPrefix, second, host_name(), ::getpid());
}

const std::string& made(const std::string& folder) {
  make_folders(folder);
  return folder;
}

std::vector<double> finite_elements(const Tensor& tensor) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    if (const double value = tensor.at(i); std::isfinite(value)) values.push_back(value);
  return values;
}

tensorboard::HistogramProto histogram_of(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double least = *low, most = *high;
  const std::size_t buckets = least == most ? 1 : kBuckets;
  const double width = most / static_cast<double>(buckets) - least / static_cast<double>(buckets);  // most - least may be infinite
  std::vector<std::int64_t> counts(buckets);
  tensorboard::HistogramProto result;
  for (const double value : values) {
    const double place = width > 0 ? value / width - least / width : 0;
    ++counts[std::min(buckets - 1, static_cast<std::size_t>(std::max(0.0, place)))];
    result.set_sum(result.sum() + value);
    result.set_sum_squares(result.sum_squares() + value * value);
  }
  result.set_min(least);
  result.set_max(most);
  result.set_num(static_cast<double>(values.size()));
  for (std::size_t i = 0; i < buckets; ++i) {
    result.add_bucket_limit(i + 1 == buckets ? most : least + width * static_cast<double>(i + 1));
    result.add_bucket(static_cast<double>(counts[i]));
  }
  return result;
}

template <typename Integer>
Integer little_endian(std::string_view bytes) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof(value); ++i) value |= static_cast<Integer>(static_cast<Integer>(static_cast<unsigned char>(bytes[i])) << (8 * i));
  return value;
}

constexpr std::size_t kLengthBytes = sizeof(std::uint64_t), kCrcBytes = sizeof(std::uint32_t);

/// The payload of the record that begins `text`, with the frame that tfrecord() gives it; nothing where there is no whole one.
std::optional<std::string_view> payload_of(std::string_view text) {
  constexpr std::size_t kHead = kLengthBytes + kCrcBytes;
  if (text.size() < kHead + kCrcBytes) return std::nullopt;
  const auto length = little_endian<std::uint64_t>(text);
  if (little_endian<std::uint32_t>(text.substr(kLengthBytes)) != masked_crc(text.substr(0, kLengthBytes)) or length > text.size() - kHead - kCrcBytes) return std::nullopt;
  const std::string_view payload = text.substr(kHead, length);
  return little_endian<std::uint32_t>(text.substr(kHead + length)) == masked_crc(payload) ? std::optional(payload) : std::nullopt;
}

/// Protobuf's readers refuse text that is not UTF-8.
std::string tag_text(std::string_view tag) { return printable(tag, limits::kNameBytes); }

}  // namespace

TensorboardEvents::TensorboardEvents(const std::string& folder) : file_(new_file_name(made(folder))) {
  tensorboard::Event event;
  event.set_file_version("brain.Event:2");
  append(file_, event);
}

void TensorboardEvents::scalars(std::int64_t step, std::span<const std::pair<std::string, double>> values) {
  if (values.empty()) return;
  tensorboard::Event event;
  event.set_step(step);
  for (const auto& [tag, value] : values) {
    tensorboard::Summary::Value& item = *event.mutable_summary()->add_value();
    item.set_tag(tag_text(tag));
    item.set_simple_value(static_cast<float>(value));
  }
  append(file_, event);
}

void TensorboardEvents::histogram(std::int64_t step, std::string_view tag, const Tensor& values) {
  const std::vector<double> finite = finite_elements(values);
  if (finite.empty()) return;
  tensorboard::Event event;
  event.set_step(step);
  tensorboard::Summary::Value& item = *event.mutable_summary()->add_value();
  item.set_tag(tag_text(tag));
  *item.mutable_histo() = histogram_of(finite);
  append(file_, event);
}

void TensorboardEvents::restart_at(std::int64_t step) {
  tensorboard::Event event;
  event.set_step(step);
  event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  append(file_, event);
}

void drop_tensorboard_events(const std::string& folder, const std::function<bool(std::int64_t step, std::string_view tag)>& is_dropped) {
  if (not is_folder(folder)) return;
  for (const std::string& name : list_folder(folder)) {
    if (not name.starts_with(kPrefix)) continue;
    const MappedFile file(folder + "/" + name);
    std::vector<std::string_view> kept;
    std::string_view rest = file.text();
    while (const auto payload = payload_of(rest)) {
      const std::string_view record = rest.substr(0, payload->size() + kLengthBytes + 2 * kCrcBytes);
      rest.remove_prefix(record.size());
      tensorboard::Event event;
      if (not event.ParseFromArray(payload->data(), static_cast<int>(payload->size()))) continue;
      const auto& values = event.summary().value();
      if (std::none_of(values.begin(), values.end(), [&](const auto& value) { return is_dropped(event.step(), value.tag()); })) kept.push_back(record);
    }
    write_file_atomically(file.path(), [&](AtomicFile& shorter) {
      for (const std::string_view record : kept) shorter.write(record);
    });
  }
}

void remove_tensorboard_events(const std::string& folder) {
  if (not is_folder(folder)) return;
  for (const std::string& name : list_folder(folder))
    if (name.starts_with(kPrefix)) remove_file(folder + "/" + name);
}

}  // namespace hone
