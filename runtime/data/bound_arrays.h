// BoundArrays: the arrays that feed an entry point, checked against it before the first step: names, types, shapes, lengths, ranges of labels and ids.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/data/array.h"
#include "runtime/data/convert.h"
#include "runtime/plan/plan.h"

namespace hone {

struct BindOptions {
  std::string flag = "--data";          ///< what messages call it
  std::string batch_symbol;             ///< Plan::batch_symbol; "": the model's sizes are fixed
  bool pre_batched = false;             ///< the first axis is the batch's number, and each slice is fed as it is
  FileReading reading = FileReading::kMappedIfSmall;
  bool one_batch = false;               ///< the arrays are a batch already, and none is cut
  bool files = true;                    ///< messages speak of hone-run's files and flags, not of a program's tensors
  std::map<std::string, double> scale;  ///< factors by input name, for inputs that are floats
  std::string loss;                     ///< the recipe's kind: targets that it is not made for are noted; "": nothing is
  std::vector<std::string> left_out;    ///< names of arrays that may be given although the entry has no such feed
};

class BoundArrays {
 public:
  /// One input of the entry and the array that feeds it.
  struct Column {
    plan::Feed feed;
    Array array;
    Converter converter;
    bool by_sample = true;                ///< the first axis is the sample (or, pre-batched, the batch); false: the whole array goes to every batch
    std::vector<std::int64_t> row_shape;  ///< as the model wants it, of one sample (or batch, or of the whole)
    std::int64_t row_elements = 1;
  };

  /// Matches `sources` with the feeds of `entry`; the learning rate is not data. Throws, all problems at once: kDataName, kDataShape, kDataType,
  /// kDataLength, kDataRange (naming file, row, value and what is allowed), and whatever opening a file throws.
  BoundArrays(const plan::Entry& entry, std::span<const DataSource> sources, BindOptions options);
  /// The same from arrays in memory, by name.
  BoundArrays(const plan::Entry& entry, NamedArrays arrays, BindOptions options);

  /// Keeps floats in memory of which at most 256 differ (pixels, whatever was done to each) as bytes, which are a quarter to read in each epoch (as_bytes.h). Batches stay the same, bit by bit. Of more than 1 GiB of floats nothing is kept so: meanwhile there is a quarter more of them. Goes through each such array once, so it pays where there are
  /// several epochs. Throws kFileRead.
  void keep_as_bytes();

  /// Samples, or batches when pre-batched.
  std::int64_t length() const { return length_; }
  bool pre_batched() const { return options_.pre_batched; }
  /// The batch size that the model has fixed; 0 if any will do.
  std::int64_t fixed_batch() const { return fixed_batch_; }
  const std::vector<Column>& columns() const { return columns_; }
  /// Of names, types and shapes, and of a few rows of each column as they were given: enough to tell other data from the same. Throws kFileRead.
  std::uint64_t hash() const { return hash_ ? *hash_ : hash_of_columns(); }
  /// Liberties that were taken, such as another grouping of the axes: one sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void match_names(const plan::Entry& entry, NamedArrays arrays);
  void add_column(const plan::Feed& feed, Array array);
  std::uint64_t hash_of_columns() const;
  void check_lengths();
  void check_first_axis(const plan::Feed& feed, const Array& array) const;
  static bool has_own_size(const Column& column);
  bool is_by_sample_by_length(const Column& column) const;
  void check_whole(const Column& column);
  void check_sizes() const;
  void count_all_the_same(const plan::Entry& entry);
  void check_scales(const plan::Entry& entry);
  void note_odd_targets(const plan::Feed& feed, const Array& array);
  void note_scaled_before(const plan::Feed& feed, const Array& array, double factor);
  [[noreturn]] void refuse_type(const plan::Feed& feed, const Array& array) const;
  [[noreturn]] void refuse_shape(const plan::Feed& feed, const Array& array) const;

  BindOptions options_;
  std::vector<Column> columns_;
  std::vector<std::string> notes_;
  std::int64_t length_ = 0;
  std::int64_t fixed_batch_ = 0;
  std::optional<std::uint64_t> hash_;  // where columns are kept otherwise than they were given
  std::map<std::string, double> scale_;  // by feed
};

/// Looks at every element of an integer array that `feed` restricts (Feed::bounds), or that its type cannot hold. `row_word` ("row", "batch") is what
/// messages call the first axis. Throws kDataRange, naming file, row, value and what is allowed.
void check_values(const plan::Feed& feed, const Array& array, std::string_view row_word);

/// The feed that the user's `name` means: the input of that name; else "x" the only model input, "y" and "target" the target. Null if there is none.
const plan::Feed* find_feed(const plan::Entry& entry, std::string_view name);

}  // namespace hone
