#include "runtime/pipeline/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/diag.h"
#include "base/text.h"

namespace hone {

namespace {

class RowsAsExamples : public ExampleStream {
 public:
  RowsAsExamples(const NamedArrays& arrays, std::unique_ptr<RowStream> rows) : arrays_(arrays), rows_(std::move(rows)) {}
  bool next(Example* example) override {
    std::int64_t row = 0;
    if (not rows_->next(&row)) return false;
    example->clear();
    example->reserve(arrays_.size());
    for (const auto& [name, array] : arrays_) {
      std::vector<std::int64_t> shape(array.shape().begin() + 1, array.shape().end());
      example->emplace_back(name, Tensor::make(array.dtype(), std::move(shape), [&](std::span<std::byte> to) { array.read(row, 1, to.data()); }));
    }
    return true;
  }
  std::int64_t skip(std::int64_t count) override { return rows_->skip(count); }

 private:
  const NamedArrays& arrays_;
  std::unique_ptr<RowStream> rows_;
};

class EveryRow : public RowStream {
 public:
  explicit EveryRow(std::int64_t rows) : rows_(rows) {}
  bool next(std::int64_t* row) override {
    if (next_ == rows_) return false;
    *row = next_++;
    return true;
  }
  std::size_t next_many(std::span<std::int64_t> to) override {
    to = to.first(static_cast<std::size_t>(std::min(static_cast<std::int64_t>(to.size()), rows_ - next_)));
    std::iota(to.begin(), to.end(), next_);
    next_ += static_cast<std::int64_t>(to.size());
    return to.size();
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t done = std::min(count, rows_ - next_);
    next_ += done;
    return done;
  }

 private:
  std::int64_t rows_, next_ = 0;
};

}  // namespace

std::unique_ptr<RowStream> Stage::open_rows(std::uint64_t) const { internal_error(__FILE__, __LINE__, "rows of a stage without arrays"); }
std::optional<RowBatches> Stage::row_batches() const { return std::nullopt; }

std::unique_ptr<ExampleStream> examples_of(const NamedArrays& arrays, std::unique_ptr<RowStream> rows) { return std::make_unique<RowsAsExamples>(arrays, std::move(rows)); }

std::unique_ptr<RowStream> every_row(std::int64_t count) { return std::make_unique<EveryRow>(count); }

Example with_own_names(Example example) {
  for (std::size_t i = 1; i < example.size(); ++i)
    for (std::size_t other = 0; other < i; ++other)
      if (example[other].first == example[i].first) throw Error(Code::kDataName, fmt::format("two tensors are called {}", quoted(example[i].first)), {}, {"each tensor of an example has a name of its own"});
  return example;
}

std::string note_of_names(const Example& example) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : example) names.push_back(name);
  return "it has " + printable(join(names, ", "), 500);
}

void rethrow_for_example(const char* stage, std::int64_t number) {
  const auto where = [&] { return fmt::format("{}: example {}: ", stage, number); };
  try {
    throw;
  } catch (const Error& error) {
    std::vector<Diag> diags = error.diags();
    diags.front().message.insert(0, where());
    throw Error(std::move(diags));
  } catch (const std::bad_alloc&) { throw; } catch (const InternalError&) {
    throw;
  } catch (const std::exception& failure) {
    throw Error(Code::kDataFormat, where() + failure.what(), {}, {"the function that the data set was given has thrown this"});
  } catch (...) {
    throw Error(Code::kDataFormat, where() + "something was thrown that is no std::exception", {}, {"the function that the data set was given has thrown it; a std::runtime_error can say what is wrong"});
  }
}

}  // namespace hone
