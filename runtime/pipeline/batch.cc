// Examples stacked to batches.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/check.h"
#include "base/diag.h"
#include "base/text.h"
#include "runtime/pipeline/stack.h"
#include "runtime/pipeline/stages.h"

namespace hone {

namespace {

std::string text_of_type(const Tensor& tensor) { return fmt::format("{}{}", to_string(tensor.dtype()), shape_text(tensor.shape())); }

std::string way_to_be_alike(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype()) return "map cast() over them before they are batched, so that all are of one type";
  const std::span<const std::int64_t> shape(a.shape()), other(b.shape());
  const bool are_sequences = not shape.empty() and shape.size() == other.size() and std::ranges::equal(shape.subspan(1), other.subspan(1));
  return are_sequences ? "map pad_sequence() over sequences of different lengths before they are batched" : "all examples of a batch need the same shape";
}

/// `number` is that of the first.
void check_alike(const std::vector<Example>& examples, std::int64_t number) {
  const Example& first = examples[0];
  for (std::size_t i = 1; i < examples.size(); ++i) {
    const std::optional<ExampleDifference> found = difference(examples[i], first);
    if (not found) continue;
    const std::string where = fmt::format("batch: example {}", number + static_cast<std::int64_t>(i));
    if (found->what == ExampleDifference::What::kCount)
      throw Error(Code::kDataName, fmt::format("{} has {} tensors, and example {} has {}", where, examples[i].size(), number, first.size()), {},
                  {"all examples need the same names"});
    const auto& [name, tensor] = examples[i][found->column];
    const auto& [first_name, first_tensor] = first[found->column];
    if (found->what == ExampleDifference::What::kName)
      throw Error(Code::kDataName, fmt::format("{} has {} where example {} has {}", where, quoted(name), number, quoted(first_name)), {},
                  {"all examples need the same names, in the same order"});
    throw Error(tensor.dtype() == first_tensor.dtype() ? Code::kDataShape : Code::kDataType,
                fmt::format("{}: {} is {}, and that of example {} is {}", where, quoted(name), text_of_type(tensor), number, text_of_type(first_tensor)),
                {}, {way_to_be_alike(tensor, first_tensor)});
  }
}

class BatchStream : public ExampleStream {
 public:
  /// `part`, if it is given, of the batches of `length` examples.
  BatchStream(std::unique_ptr<ExampleStream> from, std::int64_t size, bool drop_remainder, const PartOfBatch& part, std::optional<std::int64_t> length)
      : from_(std::move(from)), size_(size), drop_remainder_(drop_remainder), part_(part), length_(length) {}
  bool next(Example* batch) override {
    const std::int64_t most = part_ ? std::min(size_, *length_ - number_) : size_;
    BatchPart wanted = {.begin = 0, .end = most};
    if (part_ and most > 0) wanted = part_(most);
    if (wanted.begin == wanted.end and most > 0) wanted = {.begin = std::min(wanted.begin, most - 1), .end = std::min(wanted.begin, most - 1) + 1};  // one has what types and shapes are
    std::vector<Example> examples;
    Example example;
    std::int64_t passed = wanted.begin > 0 ? from_->skip(wanted.begin) : 0;
    while (static_cast<std::int64_t>(examples.size()) < wanted.end - wanted.begin and from_->next(&example)) examples.push_back(std::move(example));
    const auto made = static_cast<std::int64_t>(examples.size());
    passed += made + (most > wanted.end ? from_->skip(most - wanted.end) : 0);
    HONE_CHECK(not part_ or passed == most, "a data set ends before its length");
    if (examples.empty() or (drop_remainder_ and passed < size_)) return false;
    check_alike(examples, number_ + wanted.begin);
    number_ += passed;
    batch->clear();
    for (std::size_t column = 0; column < examples[0].size(); ++column) batch->emplace_back(examples[0][column].first, stack_column(examples, column, wanted.begin, passed));
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t skipped = from_->skip(std::min(count, std::numeric_limits<std::int64_t>::max() / size_) * size_);
    number_ += skipped;
    return skipped / size_ + (skipped % size_ != 0 and not drop_remainder_ ? 1 : 0);
  }

 private:
  std::unique_ptr<ExampleStream> from_;
  std::int64_t size_;
  bool drop_remainder_;
  const PartOfBatch& part_;
  std::optional<std::int64_t> length_;
  std::int64_t number_ = 0;
};

class BatchStage : public Stage {
 public:
  BatchStage(StagePointer from, std::int64_t size, bool drop_remainder, PartOfBatch part) : from_(std::move(from)), size_(size), drop_remainder_(drop_remainder), part_(std::move(part)) {}
  std::unique_ptr<ExampleStream> open(std::uint64_t pass) const override { return std::make_unique<BatchStream>(from_->open(pass), size_, drop_remainder_, part_, from_->length()); }
  std::optional<RowBatches> row_batches() const override {
    if (from_->arrays() == nullptr) return std::nullopt;
    return RowBatches{.rows = from_, .size = size_, .drop_remainder = drop_remainder_, .part = part_};
  }
  StagePointer in_parts(const PartOfBatch& part) const override { return from_->length() ? batch_stage(from_, size_, drop_remainder_, part) : nullptr; }
  Endless endless() const override { return from_->endless(); }
  std::optional<std::int64_t> length() const override {
    const auto examples = from_->length();
    if (not examples) return std::nullopt;
    return *examples / size_ + (*examples % size_ != 0 and not drop_remainder_ ? 1 : 0);
  }

 private:
  StagePointer from_;
  std::int64_t size_;
  bool drop_remainder_;
  PartOfBatch part_;
};

}  // namespace

StagePointer batch_stage(StagePointer from, std::int64_t size, bool drop_remainder, PartOfBatch part) {
  return std::make_shared<BatchStage>(std::move(from), size, drop_remainder, std::move(part));
}

}  // namespace hone
