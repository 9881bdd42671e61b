// TensorBoard's event files, read back record by record with checksums worked out bit by bit.
#include "formats/tensorboard_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/file_system.h"
#include "formats/tensorboard_events.pb.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using tensorboard::Event;
using test::expect_error;
using test::TempFolder;
using testing::ElementsAre;
using testing::Pair;
using testing::StartsWith;
using Scalars = std::vector<std::pair<std::string, double>>;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
  }
  return ~crc;
}

std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

template <typename Integer>
Integer integer_at(std::string_view text, std::size_t at) {
  Integer value = 0;
  std::memcpy(&value, text.data() + at, sizeof value);
  return value;
}

/// The events of a file of whole records, both checksums of each checked.
std::vector<Event> events_in(const std::string& path) {
  const std::string text = read_file(path);
  std::vector<Event> events;
  for (std::size_t at = 0; at < text.size();) {
    if (text.size() - at < 16) throw std::runtime_error("a record is cut off");
    const auto length = integer_at<std::uint64_t>(text, at);
    if (length > text.size() - at - 16) throw std::runtime_error("a record is cut off");
    EXPECT_EQ(integer_at<std::uint32_t>(text, at + 8), masked(crc32c(text.substr(at, 8))));
    const std::string payload = text.substr(at + 12, length);
    EXPECT_EQ(integer_at<std::uint32_t>(text, at + 12 + length), masked(crc32c(payload)));
    EXPECT_TRUE(events.emplace_back().ParseFromString(payload));
    at += 16 + length;
  }
  return events;
}

const tensorboard::HistogramProto& histogram_in(const Event& event) { return event.summary().value(0).histo(); }

Tensor floats(const std::vector<float>& values) { return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, std::span<const float>(values)); }

TEST(TensorboardEvents, ChecksumsAreThoseOfTheStandard) { EXPECT_EQ(crc32c("123456789"), 0xe3069283u); }

TEST(TensorboardEvents, BeginWithTheVersionAndKeepScalarsInOrder) {
  const TempFolder folder;
  TensorboardEvents events(folder / "run/train");
  events.scalars(1, Scalars{{"loss", 0.5}, {"accuracy", 0}});
  events.scalars(2, Scalars{{"loss", std::nan("")}});
  events.scalars(3, {});
  const std::vector<Event> read = events_in(events.path());
  ASSERT_EQ(read.size(), 3u) << "no record for no values";
  EXPECT_EQ(read[0].file_version(), "brain.Event:2");
  EXPECT_EQ(read[1].step(), 1);
  ASSERT_EQ(read[1].summary().value_size(), 2);
  EXPECT_EQ(read[1].summary().value(0).tag(), "loss");
  EXPECT_EQ(read[1].summary().value(0).simple_value(), 0.5f);
  EXPECT_TRUE(read[1].summary().value(1).has_simple_value()) << "a zero is a value";
  EXPECT_TRUE(std::isnan(read[2].summary().value(0).simple_value()));
  EXPECT_GT(read[2].wall_time(), 1.6e9);
  EXPECT_GE(read[2].wall_time(), read[1].wall_time());
}

TEST(TensorboardEvents, EveryRecordIsWholeWhenItsCallReturns) {
  const TempFolder folder;
  TensorboardEvents events(folder.path());
  for (std::int64_t step = 1; step <= 20; ++step) {
    events.scalars(step, Scalars{{"loss", 1.0 / static_cast<double>(step)}});
    ASSERT_EQ(events_in(events.path()).size(), static_cast<std::size_t>(step + 1));
  }
}

TEST(TensorboardEvents, AHistogramCountsFiniteElementsInThirtyBuckets) {
  const TempFolder folder;
  TensorboardEvents events(folder.path());
  std::vector<float> values(301);
  std::iota(values.begin(), values.end(), 0.0f);
  values.push_back(std::nanf(""));
  values.push_back(static_cast<float>(kInfinite));
  events.histogram(7, "dense/kernel", floats(values));
  const std::vector<Event> read = events_in(events.path());
  EXPECT_EQ(read.at(1).step(), 7);
  EXPECT_EQ(read[1].summary().value(0).tag(), "dense/kernel");
  const tensorboard::HistogramProto& histogram = histogram_in(read[1]);
  EXPECT_EQ(histogram.num(), 301);
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.max(), 300);
  EXPECT_EQ(histogram.sum(), 300.0 * 301 / 2);
  EXPECT_EQ(histogram.sum_squares(), 300.0 * 301 * 601 / 6);
  ASSERT_EQ(histogram.bucket_size(), 30);
  ASSERT_EQ(histogram.bucket_limit_size(), 30);
  EXPECT_EQ(histogram.bucket(0), 10);
  EXPECT_EQ(histogram.bucket(29), 11) << "the last bucket holds its right edge, too";
  EXPECT_EQ(histogram.bucket_limit(29), 300);
}

TEST(TensorboardEvents, HistogramsOfOneValueOfNoneAndOfTheWholeRange) {
  const TempFolder folder;
  TensorboardEvents events(folder.path());
  events.histogram(1, "same", floats({2, 2, 2}));
  events.histogram(2, "none", floats({}));
  events.histogram(3, "not finite", floats({std::nanf("")}));
  const std::vector<double> wide = {-1.7e308, 0, 1.7e308};
  events.histogram(4, "wide", Tensor::of<double>({3}, std::span<const double>(wide)));
  const std::vector<std::int64_t> whole = {-3, 4};
  events.histogram(5, "integers", Tensor::of<std::int64_t>({2}, std::span<const std::int64_t>(whole)));
  const std::vector<Event> read = events_in(events.path());
  ASSERT_EQ(read.size(), 4u);
  EXPECT_THAT(histogram_in(read[1]).bucket(), ElementsAre(3));
  EXPECT_THAT(histogram_in(read[1]).bucket_limit(), ElementsAre(2));
  const auto& counts = histogram_in(read[2]).bucket();
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0.0), 3);
  EXPECT_EQ(counts[0], 1);
  EXPECT_EQ(counts[29], 1);
  EXPECT_EQ(histogram_in(read[3]).min(), -3);
}

TEST(TensorboardEvents, EachNewFileSortsBehindTheOthers) {
  const TempFolder folder;
  folder.write("events.out.tfevents.4000000000.ahead.1", "");
  const TensorboardEvents second(folder.path());
  TensorboardEvents third(folder.path());
  third.restart_at(12);
  const std::vector<std::string> names = folder.names();
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(folder / names[1], second.path());
  EXPECT_EQ(folder / names[2], third.path());
  EXPECT_THAT(names[2], StartsWith("events.out.tfevents.4000000002."));
  const std::vector<Event> read = events_in(third.path());
  EXPECT_EQ(read.at(1).step(), 12);
  EXPECT_EQ(read[1].session_log().status(), tensorboard::SessionLog::START);
}

TEST(TensorboardEvents, DroppingLeavesTheOthersAndNoHalfRecord) {
  const TempFolder folder;
  std::string path;
  {
    TensorboardEvents events(folder.path());
    path = events.path();
    events.scalars(0, Scalars{{"epoch_loss", 1}});
    for (std::int64_t step = 1; step <= 4; ++step) events.scalars(step, Scalars{{"batch_loss", 1}});
    events.scalars(1, Scalars{{"epoch_loss", 2}});
  }
  const std::string name = path.substr(path.rfind('/') + 1);
  folder.write(name, folder.read(name) + std::string("\x05\0\0\0\0\0\0\0half", 12));
  folder.write("notes.txt", "kept");
  drop_tensorboard_events(folder.path(), [](std::int64_t step, std::string_view tag) { return tag == "epoch_loss" ? step >= 1 : step > 3; });
  std::vector<std::pair<std::int64_t, std::string>> left;
  for (const Event& event : events_in(path)) left.emplace_back(event.step(), event.has_summary() ? event.summary().value(0).tag() : event.file_version());
  EXPECT_THAT(left, ElementsAre(Pair(0, "brain.Event:2"), Pair(0, "epoch_loss"), Pair(1, "batch_loss"), Pair(2, "batch_loss"), Pair(3, "batch_loss")));
  EXPECT_EQ(folder.read("notes.txt"), "kept");
  drop_tensorboard_events(folder / "missing", [](std::int64_t, std::string_view) { return true; });
}

TEST(TensorboardEvents, NamesThatAreNotTextBecomeText) {
  const TempFolder folder;
  TensorboardEvents events(folder.path());
  events.scalars(1, Scalars{{"a\xff\nb", 1}});
  EXPECT_EQ(events_in(events.path()).at(1).summary().value(0).tag(), "a\\xff\\nb");
}

TEST(TensorboardEvents, RemovingLeavesOtherFiles) {
  const TempFolder folder;
  folder.write("notes.txt", "kept");
  { const TensorboardEvents events(folder.path()); }
  remove_tensorboard_events(folder.path());
  EXPECT_THAT(folder.names(), ElementsAre("notes.txt"));
  remove_tensorboard_events(folder / "missing");
}

TEST(TensorboardEvents, ARecordThatFindsNoRoomIsTakenBack) {
  const TempFolder folder;
  FaultyFileSystem files;
  const ScopedFileSystem in_force(files);
  TensorboardEvents events(folder.path());
  events.scalars(1, Scalars{{"loss", 1}});
  files.set_disk_space(20);
  expect_error(Code::kFileWrite, "events.out.tfevents", [&] { events.scalars(2, Scalars{{"loss", 2}}); });
  EXPECT_EQ(events_in(events.path()).size(), 2u);
}

}  // namespace
}  // namespace hone
