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
  return are_sequences ? "map pad_sequence() over sequences of different lengths before they are batched, or let padded_batch() fill them up" : "all examples of a batch need the same shape, or padded_batch()";
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

std::int64_t batches_of(std::int64_t examples, const BatchOptions& how) { return examples / how.size + (examples % how.size != 0 and not how.drop_remainder ? 1 : 0); }

class BatchStream : public ExampleStream {
 public:
  /// A part, if one is wanted, of the batches of `length` examples.
  BatchStream(std::unique_ptr<ExampleStream> from, const BatchOptions& how, std::optional<std::int64_t> length) : from_(std::move(from)), how_(how), length_(length) {}
  bool next(Example* batch) override {
    const std::int64_t most = how_.part ? std::min(how_.size, *length_ - number_) : how_.size;
    BatchPart wanted = {.begin = 0, .end = most};
    if (how_.part and most > 0) wanted = how_.part(most);
    if (wanted.begin == wanted.end and most > 0) wanted = {.begin = std::min(wanted.begin, most - 1), .end = std::min(wanted.begin, most - 1) + 1};  // one has what types and shapes are
    std::vector<Example> examples;
    Example example;
    std::int64_t passed = wanted.begin > 0 ? from_->skip(wanted.begin) : 0;
    while (static_cast<std::int64_t>(examples.size()) < wanted.end - wanted.begin and from_->next(&example)) examples.push_back(std::move(example));
    const auto made = static_cast<std::int64_t>(examples.size());
    passed += made + (most > wanted.end ? from_->skip(most - wanted.end) : 0);
    HONE_CHECK(not how_.part or passed == most, "a data set ends before its length");
    if (examples.empty() or (how_.drop_remainder and passed < how_.size)) return false;
    if (how_.padding) pad_to_largest(examples, *how_.padding);
    check_alike(examples, number_ + wanted.begin);
    number_ += passed;
    batch->clear();
    for (std::size_t column = 0; column < examples[0].size(); ++column) batch->emplace_back(examples[0][column].first, stack_column(examples, column, wanted.begin, passed));
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t skipped = from_->skip(std::min(count, std::numeric_limits<std::int64_t>::max() / how_.size) * how_.size);
    number_ += skipped;
    return batches_of(skipped, how_);
  }

 private:
  std::unique_ptr<ExampleStream> from_;
  const BatchOptions& how_;
  std::optional<std::int64_t> length_;
  std::int64_t number_ = 0;
};

class BatchStage : public Stage {
 public:
  BatchStage(StagePointer from, BatchOptions how) : from_(std::move(from)), how_(std::move(how)) {}
  std::unique_ptr<ExampleStream> open(std::uint64_t pass) const override { return std::make_unique<BatchStream>(from_->open(pass), how_, from_->length()); }
  /// Rows are of one shape, so that there is nothing to pad.
  std::optional<RowBatches> row_batches() const override {
    if (from_->arrays() == nullptr) return std::nullopt;
    return RowBatches{.rows = from_, .size = how_.size, .drop_remainder = how_.drop_remainder, .part = how_.part};
  }
  /// How far a batch is padded depends on all of its examples.
  StagePointer in_parts(const PartOfBatch& part) const override {
    if (not from_->length() or (how_.padding and from_->arrays() == nullptr)) return nullptr;
    BatchOptions how = how_;
    how.part = part;
    return batch_stage(from_, std::move(how));
  }
  Endless endless() const override { return from_->endless(); }
  std::optional<std::int64_t> length() const override {
    const auto examples = from_->length();
    return examples ? std::optional(batches_of(*examples, how_)) : std::nullopt;
  }

 private:
  StagePointer from_;
  BatchOptions how_;
};

}  // namespace

StagePointer batch_stage(StagePointer from, BatchOptions options) { return std::make_shared<BatchStage>(std::move(from), std::move(options)); }

}  // namespace hone
