#include "runtime/pipeline/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/diag.h"
#include "base/streamed_file.h"
#include "base/text.h"
#include "runtime/pipeline/text.h"

namespace hone {

namespace {

// ---- rows of arrays

class RowsStage : public Stage {
 public:
  explicit RowsStage(NamedArrays arrays) : arrays_(std::move(arrays)), are_read_(std::ranges::any_of(arrays_, [](const auto& named) { return named.second.is_streamed(); })) {}
  std::unique_ptr<ExampleStream> open(std::uint64_t pass) const override { return examples_of(arrays_, open_rows(pass)); }
  std::optional<std::int64_t> length() const override { return arrays_[0].second.row_count(); }
  /// Files that are read as they are wanted are read in their order, and not by number.
  const NamedArrays* arrays() const override { return are_read_ ? nullptr : &arrays_; }
  const NamedArrays* all_rows() const override { return &arrays_; }
  std::unique_ptr<RowStream> open_rows(std::uint64_t) const override { return every_row(arrays_[0].second.row_count()); }

 private:
  NamedArrays arrays_;
  bool are_read_;
};

// ---- generators

class GeneratorStream : public ExampleStream {
 public:
  explicit GeneratorStream(Generator generator) : generator_(std::move(generator)) {}
  /// After its end it is not asked again: it may have begun anew, and that would be another pass.
  bool next(Example* example) override {
    if (is_over_) return false;
    return for_example("from_generator", number_++, [&] {
      std::optional<Example> made = generator_();
      if (made) *example = with_own_names(std::move(*made));
      is_over_ = not made;
      return not is_over_;
    });
  }

 private:
  Generator generator_;
  bool is_over_ = false;
  std::int64_t number_ = 0;
};

class GeneratorStage : public Stage {
 public:
  explicit GeneratorStage(std::function<Generator()> start) : start_(std::move(start)) {}
  std::unique_ptr<ExampleStream> open(std::uint64_t) const override {
    return std::make_unique<GeneratorStream>(for_example("from_generator", 0, [&] {
      Generator generator = start_();
      if (not generator) throw Error(Code::kUsage, "what begins a pass gave no function", {}, {"from_generator() takes a function that gives one, which gives examples"});
      return generator;
    }));
  }
  std::optional<std::int64_t> length() const override { return std::nullopt; }

 private:
  std::function<Generator()> start_;
};

// ---- lines

constexpr std::size_t kLineBlockBytes = 256 * 1024;
constexpr std::size_t kLineBytes = std::size_t{64} << 20;

class LineStream : public ExampleStream {
 public:
  explicit LineStream(const std::vector<std::string>& paths) : paths_(paths) {}
  bool next(Example* example) override {
    std::string line;
    if (not read_line(&line)) return false;
    *example = {{"line", text_tensor(line)}};
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    std::string ignored;
    std::int64_t done = 0;
    while (done < count and read_line(&ignored)) ++done;
    return done;
  }

 private:
  bool read_line(std::string* line) {
    line->clear();
    while (at_ == block_.size() and fill()) continue;
    if (at_ == block_.size()) return false;
    while (true) {
      const std::size_t end = block_.find('\n', at_);
      line->append(block_, at_, std::min(end, block_.size()) - at_);
      at_ = end == std::string::npos ? block_.size() : end + 1;
      if (line->size() > kLineBytes)
        throw Error(Code::kTooLarge,
                    fmt::format("{}: line {} is longer than {}", printable(paths_[file_number_ - 1], 1000), line_ + 1, human_bytes(kLineBytes)), {},
                    {"is it a text file?"});
      if (end != std::string::npos or not fill_from_this_file()) break;
    }
    ++line_;
    if (line->ends_with('\r')) line->pop_back();
    return true;
  }

  bool fill_from_this_file() {
    const auto count = static_cast<std::size_t>(file_ ? std::min<std::uint64_t>(kLineBlockBytes, file_->size() - offset_) : 0);
    if (count == 0) return false;
    block_.resize(count);
    file_->read(offset_, std::as_writable_bytes(std::span(block_)));
    offset_ += count;
    at_ = 0;
    return true;
  }

  bool fill() {
    if (fill_from_this_file()) return true;
    if (file_number_ == paths_.size()) return false;
    file_.emplace(paths_[file_number_++]);
    offset_ = 0;
    line_ = 0;
    return true;
  }

  const std::vector<std::string>& paths_;
  std::size_t file_number_ = 0;
  std::optional<StreamedFile> file_;
  std::uint64_t offset_ = 0;
  std::string block_;
  std::size_t at_ = 0;
  std::int64_t line_ = 0;
};

class LinesStage : public Stage {
 public:
  explicit LinesStage(std::vector<std::string> paths) : paths_(std::move(paths)) {}
  std::unique_ptr<ExampleStream> open(std::uint64_t) const override { return std::make_unique<LineStream>(paths_); }
  std::optional<std::int64_t> length() const override { return std::nullopt; }

 private:
  std::vector<std::string> paths_;
};

}  // namespace

StagePointer rows_stage(NamedArrays arrays) {
  if (arrays.empty()) throw Error(Code::kDataName, "a data set of no arrays", {}, {"name at least one"});
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Array& array = arrays[i].second;
    if (array.shape().empty() or array.row_count() == 0)
      throw Error(Code::kDataLength, fmt::format("{} has no rows", printable(array.label())), {}, {"the first axis is the sample"});
    if (array.row_count() != arrays[0].second.row_count())
      throw Error(Code::kDataLength,
                  fmt::format("{} has {} rows, and {} has {}", printable(arrays[0].second.label()), arrays[0].second.row_count(), printable(array.label()),
                              array.row_count()),
                  {}, {"row i of each array belongs to sample i"});
    for (std::size_t other = 0; other < i; ++other)
      if (arrays[other].first == arrays[i].first)
        throw Error(Code::kDataName, fmt::format("{} is given twice", quoted(arrays[i].first)), {}, {"name each array once"});
  }
  return std::make_shared<RowsStage>(std::move(arrays));
}

StagePointer generator_stage(std::function<Generator()> start) { return std::make_shared<GeneratorStage>(std::move(start)); }

StagePointer lines_stage(std::vector<std::string> paths) {
  for (const std::string& path : paths) StreamedFile missing(path);  // said now, not in the middle of training
  return std::make_shared<LinesStage>(std::move(paths));
}

}  // namespace hone
