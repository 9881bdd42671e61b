#include "runtime/pipeline/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/diag.h"
#include "base/text.h"
#include "runtime/pipeline/dataset.h"
#include "runtime/pipeline/stack.h"

namespace hone {

namespace {

constexpr std::string_view kBlanks = " \t\n\v\f\r";

void check_kind(const Tensor& sequence, const Tensor& first, std::size_t number) {
  const auto text = [](const Tensor& tensor) { return fmt::format("{}{}", to_string(tensor.dtype()), shape_text(tensor.shape())); };
  if (sequence.shape().empty())
    throw Error(Code::kDataShape, fmt::format("pad_sequences: sequence {} is {}, a single number", number, text(sequence)), {}, {"the first axis of a sequence are its steps: reshaped({1}) makes one of a number"});
  const bool same_type = sequence.dtype() == first.dtype();
  const bool same_rest = sequence.shape().size() == first.shape().size() and
                         std::equal(sequence.shape().begin() + 1, sequence.shape().end(), first.shape().begin() + 1);
  if (same_type and same_rest) return;
  throw Error(same_type ? Code::kDataShape : Code::kDataType,
              fmt::format("pad_sequences: sequence {} is {}, and the first is {}", number, text(sequence), text(first)), {},
              {"sequences may differ in their first axis, the steps, only"});
}

}  // namespace

Tensor text_tensor(std::string_view text) { return Tensor::copy(DType::kU8, {static_cast<std::int64_t>(text.size())}, std::as_bytes(std::span(text))); }

std::string_view text_of(const Tensor& tensor) {
  if (tensor.dtype() != DType::kU8 or tensor.shape().size() != 1)
    throw Error(Code::kDataType, fmt::format("text is u8[bytes], and this is {}{}", to_string(tensor.dtype()), shape_text(tensor.shape())), {},
                {"text_tensor() makes it of a string"});
  return {reinterpret_cast<const char*>(tensor.bytes().data()), tensor.byte_count()};
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.size(), text.find_first_of(kBlanks, at));
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

Vocabulary Vocabulary::count(const Dataset& texts, std::string_view name, Options options) {
  if (texts.is_endless()) throw Error(Code::kUsage, "Vocabulary::count: the texts have no end", {}, {"count them without repeat(), or take(n) of them"});
  if (options.most_words < 0) throw Error(Code::kUsage, fmt::format("Vocabulary::count: most_words is {}", options.most_words), {}, {"0 keeps all words"});
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> counts;
  Example example;
  for (ExampleIterator examples = texts.iterate(); examples.next(&example);) {
    for (const std::string_view word : split_words(text_of(tensor_of(example, name)))) {
      const auto found = counts.find(word);
      if (found != counts.end()) ++found->second;
      else counts.emplace(word, 1);
    }
  }
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second != b.second ? a.second > b.second : a.first < b.first; });
  if (options.most_words > 0) sorted.resize(std::min(sorted.size(), static_cast<std::size_t>(options.most_words)));
  std::vector<std::string> words;
  for (auto& [word, times] : sorted) words.push_back(std::move(word));
  return Vocabulary(std::move(words), options);
}

Vocabulary::Vocabulary(std::vector<std::string> words, Options options) : options_(options), words_(std::move(words)) {
  const auto& [unknown, first, most] = options_;
  if (unknown < 0 or first < 0) throw Error(Code::kUsage, fmt::format("a vocabulary whose words have ids from {} on, and unknown ones {}", first, unknown), {}, {"ids are rows of an embedding: 0 or more"});
  if (unknown >= first and unknown - first < static_cast<std::int64_t>(words_.size()))
    throw Error(Code::kUsage, fmt::format("unknown words have the id {}, which is that of {}", unknown, quoted(words_[static_cast<std::size_t>(unknown - first)])), {},
                {"an unknown_id below first_id is no word's"});
  for (std::size_t i = 0; i < words_.size(); ++i)
    if (not ids_.emplace(words_[i], options_.first_id + static_cast<std::int64_t>(i)).second)
      throw Error(Code::kDataName, fmt::format("the vocabulary has the word {} twice", quoted(words_[i])), {}, {"each word has one id"});
}

std::int64_t Vocabulary::id_of(std::string_view word) const {
  const auto found = ids_.find(word);
  return found == ids_.end() ? options_.unknown_id : found->second;
}

Tensor Vocabulary::tokenize(std::string_view text) const {
  std::vector<std::int64_t> ids;
  for (const std::string_view word : split_words(text)) ids.push_back(id_of(word));
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(ids.size())}, std::span<const std::int64_t>(ids));
}

Tensor pad_sequences(std::span<const Tensor> sequences, const PadOptions& options) {
  if (sequences.empty()) throw Error(Code::kDataLength, "pad_sequences: no sequences", {}, {"give at least one"});
  if (options.length and *options.length < 0)
    throw Error(Code::kUsage, fmt::format("pad_sequences: a length of {}", *options.length), {}, {"leave it out for the longest sequence's"});
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    check_kind(sequences[i], sequences[0], i);
    longest = std::max(longest, sequences[i].shape()[0]);
  }
  const std::int64_t length = options.length.value_or(longest);
  std::vector<std::int64_t> shape = sequences[0].shape();
  shape[0] = length;
  const DType dtype = sequences[0].dtype();
  const std::size_t step = static_cast<std::size_t>(checked_element_count(std::span(shape).subspan(1))) * size_of(dtype);
  shape.insert(shape.begin(), static_cast<std::int64_t>(sequences.size()));
  checked_element_count(shape);
  return filled("pad_sequences", dtype, shape, options.value, [&](std::span<std::byte> to) {
    for (const Tensor& sequence : sequences) {
      const std::int64_t steps = std::min(length, sequence.shape()[0]);
      const auto from = static_cast<std::size_t>(options.truncating == Side::kPre ? sequence.shape()[0] - steps : 0) * step;
      const auto at = static_cast<std::size_t>(options.padding == Side::kPre ? length - steps : 0) * step;
      std::copy_n(sequence.bytes().begin() + static_cast<std::ptrdiff_t>(from), static_cast<std::size_t>(steps) * step,
                  to.begin() + static_cast<std::ptrdiff_t>(at));
      to = to.subspan(static_cast<std::size_t>(length) * step);
    }
  });
}

Tensor pad_sequence(const Tensor& sequence, std::int64_t length, PadOptions options) {
  options.length = length;
  const Tensor padded = pad_sequences({&sequence, 1}, options);
  return padded.reshaped({padded.shape().begin() + 1, padded.shape().end()});
}

}  // namespace hone
