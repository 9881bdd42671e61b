// The examples of one whole pass, kept in memory or in a file.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/diag.h"
#include "base/text.h"
#include "formats/example_file.h"
#include "runtime/pipeline/choosing_stage.h"
#include "runtime/pipeline/stack.h"
#include "runtime/pipeline/stages.h"

namespace hone {

namespace {

// What is kept is that of pass 0, whatever pass fills the cache: so what later passes give does not depend on which came first.
constexpr std::uint64_t kKeptPass = 0;

// ---- memory

/// The elements of one pass. Examples that are alike are kept as rows of arrays, which those who make batches gather by themselves.
template <typename Element>
struct Kept {
  explicit Kept(std::vector<Element> all) : elements(std::move(all)), count(static_cast<std::int64_t>(elements.size())) {
    if constexpr (std::is_same_v<Element, Example>) stack();
  }

  std::vector<Element> elements;  // empty where there are arrays
  NamedArrays arrays;
  std::int64_t count;

 private:
  void stack() {
    if (elements.empty() or std::ranges::any_of(elements, [&](const Example& each) { return difference(each, elements[0]).has_value(); })) return;
    for (std::size_t column = 0; column < elements[0].size(); ++column) {
      const std::string name = elements[0][column].first;
      arrays.emplace_back(name, Array(name, stack_column(elements, column, 0, count)));
    }
    if (not arrays.empty()) elements = {};
  }
};

/// What all passes share: the elements, once one of them was whole.
template <typename Element>
class MemoryCache {
 public:
  std::shared_ptr<const Kept<Element>> kept() const {
    const std::lock_guard lock(mutex_);
    return kept_;
  }
  void keep(std::vector<Element> elements) {
    auto kept = std::make_shared<const Kept<Element>>(std::move(elements));
    const std::lock_guard lock(mutex_);
    if (not kept_) kept_ = std::move(kept);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Kept<Element>> kept_;
};

template <typename Element>
class KeptStream : public ElementStream<Element> {
 public:
  explicit KeptStream(std::shared_ptr<const Kept<Element>> kept) : kept_(std::move(kept)) {}
  bool next(Element* element) override {
    if (at_ == kept_->elements.size()) return false;
    *element = kept_->elements[at_++];
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    const std::size_t done = std::min(static_cast<std::size_t>(count), kept_->elements.size() - at_);
    at_ += done;
    return static_cast<std::int64_t>(done);
  }

 private:
  std::shared_ptr<const Kept<Element>> kept_;
  std::size_t at_ = 0;
};

/// Goes through a pass and gives each element to `keeper`, too, which is told when there was the last one.
template <typename Element, typename Keeper>
class KeepingStream : public ElementStream<Element> {
 public:
  /// `length`: of `from`, where it is known. The rest is what the keeper is made of.
  template <typename... Parts>
  KeepingStream(std::unique_ptr<ElementStream<Element>> from, std::optional<std::int64_t> length, Parts&&... parts) : from_(std::move(from)), length_(length), keeper_(std::forward<Parts>(parts)...) {}
  bool next(Element* element) override {
    if (is_kept_) return false;
    const bool more = from_->next(element);
    if (more) keeper_.add(*element), ++count_;
    if (more and length_ != count_) return true;  // who knows the length does not ask for one behind the last
    is_kept_ = true;
    keeper_.commit();
    return more;
  }

 private:
  std::unique_ptr<ElementStream<Element>> from_;
  std::optional<std::int64_t> length_;
  Keeper keeper_;
  std::int64_t count_ = 0;
  bool is_kept_ = false;
};

template <typename Element>
class MemoryKeeper {
 public:
  explicit MemoryKeeper(MemoryCache<Element>& cache) : cache_(cache) {}
  void add(const Element& element) { elements_.push_back(element); }
  void commit() { cache_.keep(std::move(elements_)); }

 private:
  MemoryCache<Element>& cache_;
  std::vector<Element> elements_;
};

/// Of rows that lie in memory their numbers are kept. Others are such rows themselves, once they are kept.
class MemoryCacheStage : public ChoosingStage<MemoryCacheStage> {
 public:
  explicit MemoryCacheStage(StagePointer from) : ChoosingStage(std::move(from)) {}
  const NamedArrays* arrays() const override {
    if (const NamedArrays* arrays = from_->arrays()) return arrays;
    const auto kept = std::get<MemoryCache<Example>>(caches_).kept();
    return kept and not kept->arrays.empty() ? &kept->arrays : nullptr;
  }
  template <typename Element>
  std::unique_ptr<ElementStream<Element>> stream(std::uint64_t) const {
    if constexpr (std::is_same_v<Element, std::int64_t>)
      if (from_->arrays() == nullptr) return every_row(*length());
    MemoryCache<Element>& cache = std::get<MemoryCache<Element>>(caches_);
    const auto kept = cache.kept();
    if (not kept) return std::make_unique<KeepingStream<Element, MemoryKeeper<Element>>>(open_as<Element>(*from_, kKeptPass), from_->length(), cache);
    if constexpr (std::is_same_v<Element, Example>)
      if (not kept->arrays.empty()) return examples_of(kept->arrays, every_row(kept->count));
    return std::make_unique<KeptStream<Element>>(kept);
  }
  std::optional<std::int64_t> length() const override {
    const auto examples = std::get<MemoryCache<Example>>(caches_).kept();
    const auto rows = std::get<MemoryCache<std::int64_t>>(caches_).kept();
    return examples ? examples->count : rows ? rows->count : from_->length();
  }
  Endless endless() const override { return from_->endless(); }

 private:
  mutable std::tuple<MemoryCache<Example>, MemoryCache<std::int64_t>> caches_;
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

class FileCacheStage : public Stage {
 public:
  FileCacheStage(StagePointer from, std::string path, std::string of) : from_(std::move(from)), path_(std::move(path)), of_(std::move(of)) {}
  std::unique_ptr<ExampleStream> open(std::uint64_t) const override {
    if (file_exists(path_)) return std::make_unique<FileStream>(reader());
    return std::make_unique<KeepingStream<Example, ExampleFileWriter>>(from_->open(kKeptPass), from_->length(), path_, of_);
  }
  std::optional<std::int64_t> length() const override { return file_exists(path_) ? static_cast<std::int64_t>(reader().count()) : from_->length(); }
  Endless endless() const override { return file_exists(path_) ? Endless::kNo : from_->endless(); }

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
