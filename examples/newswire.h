// What the newswire programs share: the net, and texts of Reuters-21578 R8 as ids.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "api/hone.h"

namespace newswire {

using namespace hone;

constexpr std::int64_t kWords = 300, kEmbedding = 7;

constexpr const char* kRecipe = R"(
[loss]
kind = "cross_entropy"
[optimizer]
kind = "nadam"
[metrics]
list = ["accuracy"]
[train]
convention = "keras"
)";

inline void build(nn::Model& model, std::int64_t vocabulary, std::int64_t topics) {
  nn::Value x = nn::embedding(model.input("x", {kWords}, DType::kI32), vocabulary, kEmbedding);
  x = nn::permute(x, {2, 1});  // ONNX's convolutions want the channels first
  x = nn::max_pool(nn::relu(nn::conv(x, 64, 5)), 2);
  x = nn::max_pool(nn::relu(nn::conv(x, 32, 3)), 2);
  model.output("topic", nn::softmax(nn::dense(nn::flatten(nn::permute(x, {2, 1})), topics)));
}

inline std::pair<std::string_view, std::string_view> topic_and_text(const Example& line) {
  const std::string_view text = text_of(tensor_of(line, "line"));
  const std::size_t tab = std::min(text.find('\t'), text.size() - 1);
  return {text.substr(0, tab), text.substr(tab + 1)};
}

inline Dataset texts_of(const Dataset& lines) {
  return lines.map([](const Example& line) { return Example{{"line", text_tensor(topic_and_text(line).second)}}; });
}

/// The topics' numbers are their ranks in the alphabet.
inline std::map<std::string, std::int32_t, std::less<>> number_topics(const Dataset& lines) {
  std::map<std::string, std::int32_t, std::less<>> topics;
  ExampleIterator all = lines.iterate();
  for (const Example& line : all) topics.emplace(topic_and_text(line).first, 0);
  std::int32_t next = 0;
  for (auto& [topic, number] : topics) number = next++;
  return topics;
}

/// 1 begins a text, 2 is an unknown word; texts are filled up and cut at the front.
inline Dataset encoded(const Dataset& lines, const Vocabulary& words, const std::map<std::string, std::int32_t, std::less<>>& topics) {
  return lines.map([words, topics](const Example& line) {
    const auto [topic, text] = topic_and_text(line);
    const Tensor ids = words.tokenize(text).cast(DType::kI32);
    const Tensor begun = Tensor::make(DType::kI32, {ids.element_count() + 1}, [&](std::span<std::byte> bytes) {
      const std::int32_t start = 1;
      std::copy_n(reinterpret_cast<const std::byte*>(&start), sizeof start, bytes.begin());
      std::copy(ids.bytes().begin(), ids.bytes().end(), bytes.begin() + sizeof start);
    });
    const auto found = topics.find(topic);
    if (found == topics.end()) throw Error(Code::kDataRange, fmt::format("no text to train on has the topic \"{}\"", topic), {}, {"a net can tell only topics that it has seen: leave such texts out"});
    return Example{{"x", pad_sequence(begun, kWords)}, {"y", Tensor::scalar(found->second)}};
  });
}

struct Newswires {
  Dataset train, test;  ///< examples of x, ids, and y, the topic's number
  std::int64_t words, topics;
};

/// `folder` holds train.txt and test.txt: a topic, a tab, words.
inline Newswires read_newswires(const std::string& folder) {
  const Dataset train = Dataset::from_lines({folder + "/train.txt"}), test = Dataset::from_lines({folder + "/test.txt"});
  const Vocabulary words = Vocabulary::count(texts_of(train), "line", {.unknown_id = 2, .first_id = 3});
  const auto topics = number_topics(train);
  return {encoded(train, words, topics).cache(), encoded(test, words, topics).cache(), words.size(), static_cast<std::int64_t>(topics.size())};
}

}  // namespace newswire
