// Examples stacked to batches.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/diag.h"
#include "base/text.h"
#include "runtime/pipeline/stages.h"

namespace hone {

namespace {

std::string text_of_type(const Tensor& tensor) { return fmt::format("{}{}", to_string(tensor.dtype()), shape_text(tensor.shape())); }

/// `number` is that of the first.
void check_alike(const std::vector<Example>& examples, std::int64_t number) {
  const Example& first = examples[0];
  for (std::size_t i = 1; i < examples.size(); ++i) {
    const std::string where = fmt::format("batch: example {}", number + static_cast<std::int64_t>(i));
    if (examples[i].size() != first.size())
      throw Error(Code::kDataName, fmt::format("{} has {} tensors, and example {} has {}", where, examples[i].size(), number, first.size()), {},
                  {"all examples need the same names"});
    for (std::size_t column = 0; column < first.size(); ++column) {
      const auto& [name, tensor] = examples[i][column];
      const auto& [first_name, first_tensor] = first[column];
      if (name != first_name)
        throw Error(Code::kDataName, fmt::format("{} has {} where example {} has {}", where, quoted(name), number, quoted(first_name)), {},
                    {"all examples need the same names, in the same order"});
      if (tensor.dtype() != first_tensor.dtype() or tensor.shape() != first_tensor.shape())
        throw Error(Code::kDataShape,
                    fmt::format("{}: {} is {}, and that of example {} is {}", where, quoted(name), text_of_type(tensor), number, text_of_type(first_tensor)),
                    {}, {"map pad_sequence() over sequences of different lengths before they are batched"});
    }
  }
}

Tensor stacked(const std::vector<Example>& examples, std::size_t column) {
  const Tensor& first = examples[0][column].second;
  std::vector<std::int64_t> shape = first.shape();
  shape.insert(shape.begin(), static_cast<std::int64_t>(examples.size()));
  return Tensor::make(first.dtype(), std::move(shape), [&](std::span<std::byte> to) {
    for (const Example& example : examples) {
      const std::span<const std::byte> bytes = example[column].second.bytes();
      std::copy(bytes.begin(), bytes.end(), to.begin());
      to = to.subspan(bytes.size());
    }
  });
}

class BatchStream : public ExampleStream {
 public:
  BatchStream(std::unique_ptr<ExampleStream> from, std::int64_t size, bool drop_remainder)
      : from_(std::move(from)), size_(size), drop_remainder_(drop_remainder) {}
  bool next(Example* batch) override {
    std::vector<Example> examples;
    Example example;
    while (static_cast<std::int64_t>(examples.size()) < size_ and from_->next(&example)) examples.push_back(std::move(example));
    if (examples.empty() or (drop_remainder_ and static_cast<std::int64_t>(examples.size()) < size_)) return false;
    check_alike(examples, number_);
    number_ += static_cast<std::int64_t>(examples.size());
    batch->clear();
    for (std::size_t column = 0; column < examples[0].size(); ++column) batch->emplace_back(examples[0][column].first, stacked(examples, column));
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    std::int64_t done = 0;
    for (std::int64_t skipped = size_; done < count and skipped == size_; number_ += skipped) {
      skipped = from_->skip(size_);
      done += skipped == size_ or (skipped > 0 and not drop_remainder_) ? 1 : 0;
    }
    return done;
  }

 private:
  std::unique_ptr<ExampleStream> from_;
  std::int64_t size_;
  bool drop_remainder_;
  std::int64_t number_ = 0;
};

class BatchStage : public Stage {
 public:
  BatchStage(StagePointer from, std::int64_t size, bool drop_remainder) : from_(std::move(from)), size_(size), drop_remainder_(drop_remainder) {}
  std::unique_ptr<ExampleStream> open(std::uint64_t pass) const override { return std::make_unique<BatchStream>(from_->open(pass), size_, drop_remainder_); }
  std::optional<std::int64_t> length() const override {
    const auto examples = from_->length();
    if (not examples) return std::nullopt;
    return *examples / size_ + (*examples % size_ != 0 and not drop_remainder_ ? 1 : 0);
  }

 private:
  StagePointer from_;
  std::int64_t size_;
  bool drop_remainder_;
};

}  // namespace

StagePointer batch_stage(StagePointer from, std::int64_t size, bool drop_remainder) {
  return std::make_shared<BatchStage>(std::move(from), size, drop_remainder);
}

}  // namespace hone
