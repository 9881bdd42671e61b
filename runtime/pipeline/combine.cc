// Data sets put together, and batches taken apart: zip, concatenate, unbatch.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/diag.h"
#include "base/text.h"
#include "runtime/pipeline/sources.h"
#include "runtime/pipeline/stages.h"

namespace hone {

namespace {

// ---- zip

class ZipStream : public ExampleStream {
 public:
  ZipStream(const std::vector<StagePointer>& from, std::uint64_t pass) {
    for (const StagePointer& stage : from) from_.push_back(stage->open(pass));
  }
  bool next(Example* example) override {
    Example joined;
    for (const auto& from : from_) {
      if (is_over_ or not from->next(example)) {
        is_over_ = true;
        return false;
      }
      std::ranges::move(*example, std::back_inserter(joined));
    }
    *example = for_example("zip", number_++, [&] { return with_own_names(std::move(joined)); });
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    for (const auto& from : from_) {
      const std::int64_t done = is_over_ ? 0 : from->skip(count);
      is_over_ = is_over_ or done < count;
      count = done;
    }
    number_ += count;
    return count;
  }

 private:
  std::vector<std::unique_ptr<ExampleStream>> from_;
  std::int64_t number_ = 0;
  bool is_over_ = false;  // one of them is, and the others may have more
};

class ZipStage : public Stage {
 public:
  explicit ZipStage(std::vector<StagePointer> from) : from_(std::move(from)) {}
  std::unique_ptr<ExampleStream> open(std::uint64_t pass) const override { return std::make_unique<ZipStream>(from_, pass); }
  /// Nothing where one of unknown length may be the shortest.
  std::optional<std::int64_t> length() const override {
    std::optional<std::int64_t> shortest;
    for (const StagePointer& each : from_) {
      const auto length = each->length();
      if (length) shortest = std::min(shortest.value_or(*length), *length);
      else if (each->endless() != Endless::kSurely) return std::nullopt;
    }
    return shortest;
  }
  Endless endless() const override {
    Endless least = Endless::kSurely;
    for (const StagePointer& each : from_) least = std::min(least, each->endless());
    return least;
  }

 private:
  std::vector<StagePointer> from_;
};

// ---- concatenate

class ConcatenateStream : public ExampleStream {
 public:
  ConcatenateStream(const Stage& first, const Stage& second, std::uint64_t pass) : now_(first.open(pass)), second_(&second), pass_(pass) {}
  bool next(Example* example) override {
    while (not now_->next(example))
      if (not go_on()) return false;
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    std::int64_t done = now_->skip(count);
    while (done < count and go_on()) done += now_->skip(count - done);
    return done;
  }

 private:
  bool go_on() {
    if (second_ == nullptr) return false;
    now_ = std::exchange(second_, nullptr)->open(pass_);
    return true;
  }

  std::unique_ptr<ExampleStream> now_;
  const Stage* second_;  // null once it is gone through
  std::uint64_t pass_;
};

class ConcatenateStage : public Stage {
 public:
  ConcatenateStage(StagePointer first, StagePointer second) : first_(std::move(first)), second_(std::move(second)) {}
  std::unique_ptr<ExampleStream> open(std::uint64_t pass) const override { return std::make_unique<ConcatenateStream>(*first_, *second_, pass); }
  std::optional<std::int64_t> length() const override {
    const auto first = first_->length(), second = second_->length();
    return first and second ? std::optional(checked_add(*first, *second, "the examples of a data set")) : std::nullopt;
  }
  Endless endless() const override { return std::max(first_->endless(), second_->endless()); }

 private:
  StagePointer first_, second_;
};

// ---- unbatch

class UnbatchStream : public ExampleStream {
 public:
  explicit UnbatchStream(std::unique_ptr<ExampleStream> from) : from_(std::move(from)) {}
  bool next(Example* example) override {
    while (row_ == rows_)
      if (not next_batch()) return false;
    example->clear();
    for (const auto& [name, tensor] : batch_) {
      std::vector<std::int64_t> shape(tensor.shape().begin() + 1, tensor.shape().end());
      const std::size_t bytes = tensor.byte_count() / static_cast<std::size_t>(rows_);
      example->emplace_back(name, Tensor::copy(tensor.dtype(), std::move(shape), tensor.bytes().subspan(static_cast<std::size_t>(row_) * bytes, bytes)));
    }
    ++row_;
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    std::int64_t done = 0;
    while (done < count and (row_ < rows_ or next_batch())) {
      const std::int64_t now = std::min(count - done, rows_ - row_);
      row_ += now;
      done += now;
    }
    return done;
  }

 private:
  bool next_batch() {
    row_ = rows_ = 0;
    if (not from_->next(&batch_)) return false;
    rows_ = for_example("unbatch", number_++, [&] { return rows_of(batch_); });
    return true;
  }

  static std::int64_t rows_of(const Example& batch) {
    if (batch.empty()) throw Error(Code::kDataName, "it has no tensors", {}, {"an example has one tensor or more"});
    for (const auto& [name, tensor] : batch) {
      if (tensor.shape().empty()) throw Error(Code::kDataShape, fmt::format("{} is a single number, and has no rows", quoted(name)), {}, {"the first axis of each tensor of a batch is the sample"});
      if (tensor.shape()[0] != batch[0].second.shape()[0])
        throw Error(Code::kDataLength, fmt::format("{} has {} rows, and {} has {}", quoted(batch[0].first), batch[0].second.shape()[0], quoted(name), tensor.shape()[0]), {}, {"row i of each tensor belongs to sample i"});
    }
    return batch[0].second.shape()[0];
  }

  std::unique_ptr<ExampleStream> from_;
  Example batch_;
  std::int64_t row_ = 0, rows_ = 0, number_ = 0;
};

class UnbatchStage : public Stage {
 public:
  explicit UnbatchStage(StagePointer from) : from_(std::move(from)) {}
  std::unique_ptr<ExampleStream> open(std::uint64_t pass) const override { return std::make_unique<UnbatchStream>(from_->open(pass)); }
  std::optional<std::int64_t> length() const override { return std::nullopt; }
  Endless endless() const override { return std::min(from_->endless(), Endless::kUnlessEmpty); }  // batches may have no rows

 private:
  StagePointer from_;
};

/// The arrays of all of them, where each gives all of its rows in order and they have equally many; else none.
NamedArrays joined_rows(const std::vector<StagePointer>& from) {
  NamedArrays joined;
  for (const StagePointer& each : from) {
    const NamedArrays* arrays = each->all_rows();
    if (arrays == nullptr or each->length() != from[0]->length()) return {};
    joined.insert(joined.end(), arrays->begin(), arrays->end());
  }
  return joined;
}

}  // namespace

StagePointer zip_stage(std::vector<StagePointer> from) {
  NamedArrays rows = joined_rows(from);  // which are chosen and gathered by number
  return rows.empty() ? std::make_shared<ZipStage>(std::move(from)) : rows_stage(std::move(rows));
}

StagePointer concatenate_stage(StagePointer first, StagePointer second) { return std::make_shared<ConcatenateStage>(std::move(first), std::move(second)); }

StagePointer unbatch_stage(StagePointer from) { return std::make_shared<UnbatchStage>(std::move(from)); }

}  // namespace hone
