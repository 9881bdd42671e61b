// Text as numbers: words, a vocabulary by frequency, sequences of one length.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/tensor.h"

namespace hone {

class Dataset;

/// Text is a tensor u8[bytes].
Tensor text_tensor(std::string_view text);
/// Throws kDataType for a tensor that is no u8[bytes].
std::string_view text_of(const Tensor& tensor);

/// The words between blanks, tabs and line ends.
std::vector<std::string_view> split_words(std::string_view text);

struct VocabularyOptions {
  std::int64_t unknown_id = 1;  ///< of words that are not in it
  std::int64_t first_id = 2;    ///< of the most frequent word; what is below is free for padding (0), unknown words, the start of a text
  std::int64_t most_words = 0;  ///< only the most frequent so many; 0: all
};

/// Words and their ids: the more frequent a word, the lower its id; of equally frequent ones the alphabetically first.
class Vocabulary {
 public:
  using Options = VocabularyOptions;

  /// Counts the words of the texts called `name` in one pass of `texts`.
  static Vocabulary count(const Dataset& texts, std::string_view name = "line", Options options = {});
  /// Words in the order of their ids, such as those of a file that words() was written to. Throws kDataName for a word that stands there twice, kUsage for ids below 0, and for an unknown word's that is a word's.
  explicit Vocabulary(std::vector<std::string> words, Options options = {});

  /// Ids up to the highest: what an embedding needs as its number of rows.
  std::int64_t size() const { return std::max(options_.first_id + static_cast<std::int64_t>(words_.size()), options_.unknown_id + 1); }
  const std::vector<std::string>& words() const { return words_; }
  std::int64_t id_of(std::string_view word) const;
  /// The ids of the words of a text: i64[words].
  Tensor tokenize(std::string_view text) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
  };
  Options options_;
  std::vector<std::string> words_;
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> ids_;
};

enum class Side { kPre, kPost };

/// As in Keras's pad_sequences.
struct PadOptions {
  std::optional<std::int64_t> length;  ///< nothing: that of the longest sequence
  Side padding = Side::kPre;           ///< where a shorter sequence is filled up
  Side truncating = Side::kPre;        ///< where a longer one is cut
  double value = 0;                    ///< what fills it up
};

/// Sequences of one type, [steps, ...] of any number of steps: all with the same number of them, [sequences, length, ...]. Throws kDataShape, kDataType for
/// sequences of different kinds.
Tensor pad_sequences(std::span<const Tensor> sequences, const PadOptions& options = {});
/// One sequence of `length` steps. For a function that is mapped over a data set.
Tensor pad_sequence(const Tensor& sequence, std::int64_t length, PadOptions options = {});

}  // namespace hone
