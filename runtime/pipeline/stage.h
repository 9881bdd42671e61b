// What a data set is made of: stages that never change, and streams that go through one pass of a stage. For those who write stages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/data/array.h"
#include "runtime/data/batch_source.h"
#include "runtime/data/named_tensors.h"

namespace hone {

using Example = NamedTensors;

/// One pass over a stage's elements. For one thread at a time.
template <typename Element>
class ElementStream {
 public:
  virtual ~ElementStream() = default;
  /// The next element; false at the end.
  virtual bool next(Element* element) = 0;
  /// The next elements, into all of `to`. How many there were: fewer only at the end.
  virtual std::size_t next_many(std::span<Element> to) {
    std::size_t done = 0;
    while (done < to.size() and next(&to[done])) ++done;
    return done;
  }
  /// Passes over `count` elements, without making them where that can be helped. How many there were: fewer only at the end.
  virtual std::int64_t skip(std::int64_t count) {
    Element ignored;
    std::int64_t done = 0;
    while (done < count and next(&ignored)) ++done;
    return done;
  }
};
using ExampleStream = ElementStream<Example>;
using RowStream = ElementStream<std::int64_t>;  ///< the numbers of rows

/// Has a pass no end, because of a repeat() without a number?
enum class Endless : std::uint8_t {
  kNo,           ///< as far as anybody knows
  kUnlessEmpty,  ///< what is repeated may have no elements, or none that a filter leaves
  kSurely,
};

class Stage;
using StagePointer = std::shared_ptr<const Stage>;
/// What is wanted of a batch of so many samples.
using PartOfBatch = std::function<BatchPart(std::int64_t samples)>;

/// Batches of `size` rows of the arrays of `rows`; the last one may be smaller, or is dropped.
struct RowBatches {
  StagePointer rows;
  std::int64_t size = 1;
  bool drop_remainder = false;
  PartOfBatch part = {};  ///< null: all of each batch
};

class Stage {
 public:
  virtual ~Stage() = default;
  /// Pass number `pass`: what it gives is a function of that number alone.
  virtual std::unique_ptr<ExampleStream> open(std::uint64_t pass) const = 0;
  /// Elements of a pass; nothing when that is not known, or when there is no end.
  virtual std::optional<std::int64_t> length() const = 0;
  virtual Endless endless() const { return Endless::kNo; }
  /// The arrays in memory of which each element is a row; null where elements are made otherwise, or still are: those of a cache are rows when it is full. Such a stage tells which rows they are, too.
  virtual const NamedArrays* arrays() const { return nullptr; }
  /// The arrays, also of files that are read as they are wanted, where element i is row i of each, in every pass; else null.
  virtual const NamedArrays* all_rows() const { return nullptr; }
  /// Which rows the elements of pass number `pass` are, where there are arrays.
  virtual std::unique_ptr<RowStream> open_rows(std::uint64_t pass) const;
  /// Where the elements are batches of rows of arrays: how they are made, for those who gather rows themselves.
  virtual std::optional<RowBatches> row_batches() const;
  /// The same batches, of which only a part is made: the rest of their rows are zeros. Null where this does not end in batches, or where it is not known before how many samples each will have.
  virtual StagePointer in_parts(const PartOfBatch& /*part*/) const { return nullptr; }
};

/// `example` as a function has made it. Throws kDataName where two of its tensors have one name.
Example with_own_names(Example example);

/// For an error about a name that it has not: "it has x, y".
std::string note_of_names(const Example& example);

/// The rows that `rows` counts, as examples. `arrays` stay alive.
std::unique_ptr<ExampleStream> examples_of(const NamedArrays& arrays, std::unique_ptr<RowStream> rows);

/// 0 to count - 1.
std::unique_ptr<RowStream> every_row(std::int64_t count);

/// Throws again what is being handled, as an Error that says which element of the pass it was, and in which stage.
[[noreturn]] void rethrow_for_example(const char* stage, std::int64_t number);

/// `make()`, for the element `number` of the pass; what it throws becomes an Error that says which one it was.
template <typename Make>
auto for_example(const char* stage, std::int64_t number, Make&& make) {
  try {
    return make();
  } catch (...) { rethrow_for_example(stage, number); }
}

}  // namespace hone
