// Operators on texts whose words are numbers.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// The n-grams of one length: a row of the pool each.
struct Grams {
  std::int64_t length;
  std::int64_t count;
  const std::int64_t* words;    ///< count * length of them
  const std::int64_t* columns;  ///< of the result
};

std::vector<Grams> grams_of(const ImportNode& node, const Ints& pool, const Ints& columns) {
  const Ints starts = node.integers("ngram_counts").value_or(Ints());
  const std::int64_t shortest = node.integer("min_gram_length", 1), longest = node.integer("max_gram_length", 1);
  node.require(1 <= shortest and shortest <= longest, Code::kBadAttribute, fmt::format("min_gram_length {} and max_gram_length {}", shortest, longest));
  std::vector<Grams> grams;
  std::int64_t first = 0;  // gram
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto length = static_cast<std::int64_t>(i) + 1, size = static_cast<std::int64_t>(pool.size());
    const std::int64_t begin = starts[i], end = i + 1 < starts.size() ? starts[i + 1] : size;
    node.require(0 <= begin and begin <= end and end <= size and (end - begin) % length == 0, Code::kBadAttribute,
                 fmt::format("ngram_counts gives the {}-grams words {} to {} of {}", length, begin, end, size));
    const std::int64_t count = (end - begin) / length;
    node.require(first + count <= static_cast<std::int64_t>(columns.size()), Code::kBadAttribute, "ngram_indexes has fewer entries than there are n-grams");
    if (count > 0 and shortest <= length and length <= longest) grams.push_back({length, count, pool.data() + begin, columns.data() + first});
    first += count;
  }
  return grams;
}

/// How often each of the grams occurs in each row of x[N,C], with up to `skips` words left out between any two of its words: f32 [N,grams].
Val occurrences(Val x, const Grams& grams, std::int64_t skips) {
  Builder& builder = x.builder();
  Val total = full(builder, 0, DType::kF32, {x.shape()[0], grams.count});
  for (std::int64_t step = 1; step <= (grams.length == 1 ? 1 : skips + 1); ++step) {
    const Dim positions = max(x.shape()[1] - (grams.length - 1) * step, 0);
    if (positions.is_constant(0)) break;
    Val match;
    for (std::int64_t j = 0; j < grams.length; ++j) {
      Ints words;
      for (std::int64_t gram = 0; gram < grams.count; ++gram) words.push_back(grams.words[gram * grams.length + j]);
      const Val word = cast(reshape(builder.ints(words), {1, 1, grams.count}), x.dtype());
      const Val at = op::slice(x, {kStarts = Shape{0, j * step}, kSizes = Shape{x.shape()[0], positions}, kSteps = Ints{1, 1}});
      const Val equal = op::equal(reshape(at, {x.shape()[0], positions, 1}), word);
      match = match.valid() ? op::logical_and(match, equal) : equal;
    }
    total = total + sum(cast(match, DType::kF32), {1}, false);
  }
  return total;
}

/// [grams, columns]: 1 where a gram counts.
Val columns_of(const ImportNode& node, const Grams& grams, std::int64_t columns) {
  constexpr std::int64_t kMostElements = 1 << 28;
  node.require(columns <= kMostElements / grams.count, Code::kTooLarge, fmt::format("{} n-grams in {} columns", grams.count, columns));
  std::vector<float> matrix(static_cast<std::size_t>(grams.count * columns));
  for (std::int64_t gram = 0; gram < grams.count; ++gram) matrix[static_cast<std::size_t>(gram * columns + grams.columns[gram])] = 1;
  return node.builder().constant(Tensor::of<float>({grams.count, columns}, std::span<const float>(matrix)));
}

/// TF counts, IDF gives an n-gram's weight where it occurs, TFIDF counts times the weight.
Val weighed(const ImportNode& node, Val counts, std::int64_t columns) {
  const std::string mode = node.text("mode", "");
  if (mode == "TF") return counts;
  node.require(mode == "IDF" or mode == "TFIDF", Code::kBadAttribute, fmt::format("mode is \"{}\"; TF, IDF and TFIDF are known", mode));
  const Val base = mode == "TFIDF" ? counts : cast(cast(counts, DType::kBool), DType::kF32);
  const auto weights = node.reals("weights");
  if (not weights or weights->empty()) return base;
  node.require(static_cast<std::int64_t>(weights->size()) == columns, Code::kBadAttribute, fmt::format("{} weights for {} columns", weights->size(), columns));
  const std::vector<float> values(weights->begin(), weights->end());
  return base * node.builder().constant(Tensor::of<float>({columns}, std::span<const float>(values)));
}

std::vector<Val> import_tf_idf(const ImportNode& node) {
  if (node.has_attribute("pool_strings")) node.fail(Code::kType, "Hone has no strings; number the words before the model, and use pool_int64s");
  const Val words = node.x(0);
  node.require(is_integer(words.dtype()) and words.rank() <= 2, Code::kType, "needs integers of shape [C] or [N,C]");
  const Ints pool = node.integers("pool_int64s").value_or(Ints()), indexes = node.integers("ngram_indexes").value_or(Ints());
  constexpr std::int64_t kMostColumns = 1 << 20;
  for (const std::int64_t index : indexes) node.require(0 <= index and index < kMostColumns, Code::kBadAttribute, fmt::format("an ngram index of {}", index));
  node.require(not indexes.empty(), Code::kBadAttribute, "has no ngram_indexes");
  const std::int64_t columns = *std::max_element(indexes.begin(), indexes.end()) + 1, skips = node.integer("max_skip_count", 0);
  node.require(0 <= skips and skips <= 1024, Code::kBadAttribute, fmt::format("max_skip_count = {}", skips));
  const Val x = words.rank() == 2 ? words : reshape(words, {1, element_count(words.shape())});
  Val counts = full(node.builder(), 0, DType::kF32, {x.shape()[0], columns});
  for (const Grams& grams : grams_of(node, pool, indexes)) counts = counts + op::matmul(occurrences(x, grams, skips), columns_of(node, grams, columns));
  const Val result = weighed(node, counts, columns);
  return {words.rank() == 2 ? result : reshape(result, {columns})};
}

constinit const Importer kTextOps[] = {{"TfIdfVectorizer", import_tf_idf}};

}  // namespace

std::span<const Importer> text_importers() { return kTextOps; }

}  // namespace hone::onnx
