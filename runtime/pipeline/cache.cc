// The examples of one whole pass, kept in memory or in a file.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "base/diag.h"
#include "base/text.h"
#include "formats/example_file.h"
#include "runtime/pipeline/stages.h"

namespace hone {

namespace {

// What is kept is that of pass 0, whatever pass fills the cache: so what later passes give does not depend on which came first.
constexpr std::uint64_t kKeptPass = 0;

// ---- memory

using Examples = std::vector<Example>;

/// What all passes share: the examples, once one of them was whole.
class MemoryCache {
 public:
  std::shared_ptr<const Examples> kept() const {
    const std::lock_guard lock(mutex_);
    return kept_;
  }
  void keep(Examples examples) {
    const std::lock_guard lock(mutex_);
    if (not kept_) kept_ = std::make_shared<const Examples>(std::move(examples));
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Examples> kept_;
};

class KeptStream : public ExampleStream {
 public:
  explicit KeptStream(std::shared_ptr<const Examples> examples) : examples_(std::move(examples)) {}
  bool next(Example* example) override {
    if (at_ == examples_->size()) return false;
    *example = (*examples_)[at_++];
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    const std::size_t done = std::min(static_cast<std::size_t>(count), examples_->size() - at_);
    at_ += done;
    return static_cast<std::int64_t>(done);
  }

 private:
  std::shared_ptr<const Examples> examples_;
  std::size_t at_ = 0;
};

class KeepingStream : public ExampleStream {
 public:
  KeepingStream(std::unique_ptr<ExampleStream> from, MemoryCache& cache) : from_(std::move(from)), cache_(cache) {}
  bool next(Example* example) override {
    if (ended_) return false;
    if (from_->next(example)) return examples_.push_back(*example), true;
    ended_ = true;
    cache_.keep(std::move(examples_));
    return false;
  }

 private:
  std::unique_ptr<ExampleStream> from_;
  MemoryCache& cache_;
  Examples examples_;
  bool ended_ = false;
};

class MemoryCacheStage : public Stage {
 public:
  explicit MemoryCacheStage(StagePointer from) : from_(std::move(from)) {}
  std::unique_ptr<ExampleStream> open(std::uint64_t) const override {
    if (auto kept = cache_.kept()) return std::make_unique<KeptStream>(std::move(kept));
    return std::make_unique<KeepingStream>(from_->open(kKeptPass), cache_);
  }
  std::optional<std::int64_t> length() const override {
    const auto kept = cache_.kept();
    return kept ? static_cast<std::int64_t>(kept->size()) : from_->length();
  }

 private:
  StagePointer from_;
  mutable MemoryCache cache_;
};

// ---- file

class FileStream : public ExampleStream {
 public:
  explicit FileStream(ExampleFileReader reader) : reader_(std::move(reader)) {}
  bool next(Example* example) override { return reader_.next(example); }
  std::int64_t skip(std::int64_t count) override { return static_cast<std::int64_t>(reader_.skip(static_cast<std::uint64_t>(count))); }

 private:
  ExampleFileReader reader_;
};

class WritingStream : public ExampleStream {
 public:
  WritingStream(std::unique_ptr<ExampleStream> from, const std::string& path, std::string_view of) : from_(std::move(from)), writer_(path, of) {}
  bool next(Example* example) override {
    if (ended_) return false;
    if (from_->next(example)) return writer_.add(*example), true;
    ended_ = true;
    writer_.commit();
    return false;
  }

 private:
  std::unique_ptr<ExampleStream> from_;
  ExampleFileWriter writer_;
  bool ended_ = false;
};

class FileCacheStage : public Stage {
 public:
  FileCacheStage(StagePointer from, std::string path, std::string of) : from_(std::move(from)), path_(std::move(path)), of_(std::move(of)) {}
  std::unique_ptr<ExampleStream> open(std::uint64_t) const override {
    if (file_exists(path_)) return std::make_unique<FileStream>(reader());
    return std::make_unique<WritingStream>(from_->open(kKeptPass), path_, of_);
  }
  std::optional<std::int64_t> length() const override { return file_exists(path_) ? static_cast<std::int64_t>(reader().count()) : from_->length(); }

 private:
  ExampleFileReader reader() const {
    ExampleFileReader reader(path_);
    if (reader.of() == of_) return reader;
    throw Error(Code::kDataFormat, fmt::format("{} holds the examples of another data set", printable(path_, 1000)), {},
                {"they are of " + printable(reader.of(), 500), "this one is " + printable(of_, 500), "give it a path of its own, or remove the file, and it is made again"});
  }

  StagePointer from_;
  std::string path_, of_;
};

}  // namespace

StagePointer memory_cache_stage(StagePointer from) { return std::make_shared<MemoryCacheStage>(std::move(from)); }

StagePointer file_cache_stage(StagePointer from, std::string path, std::string of) { return std::make_shared<FileCacheStage>(std::move(from), std::move(path), std::move(of)); }

}  // namespace hone
