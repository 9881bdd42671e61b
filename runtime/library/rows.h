// Library rows: faster ways to do what an op already means. A LibraryStep of a plan names a row; here is the one list of them.
//
// All tensors are plain row-major. A row may repack them on its way; that is its own business and its scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/call_rules.h"
#include "base/dtype.h"

namespace hone {

struct TensorType {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;

  friend bool operator==(const TensorType&, const TensorType&) = default;
};

/// What a call is made from. All sizes are numbers.
struct LibrarySpec {
  std::map<std::string, std::vector<std::int64_t>, std::less<>> attributes;
  std::vector<std::optional<TensorType>> operands;  ///< nullopt: absent; trailing absent ones may be left out
  std::vector<TensorType> results;                  ///< of an opaque one the type is ignored
};

/// The attribute, or `values` if it is absent. Throws InternalError if it is of another length.
std::vector<std::int64_t> attribute_or(const LibrarySpec& spec, std::string_view name, std::vector<std::int64_t> values);
std::int64_t attribute_or(const LibrarySpec& spec, std::string_view name, std::int64_t value);

/// Bytes that are the library's to decide.
struct LibraryDescription {
  std::size_t opaque_operand_bytes = 0;   ///< of the row's opaque operand: what the call reads
  std::size_t scratch_bytes = 0;          ///< memory that a call may overwrite while it runs, 64-byte aligned
  std::vector<std::size_t> result_bytes;  ///< of each result; for an opaque one the only source
};

/// A row made ready for one set of sizes, attributes and threads.
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;

  const LibraryDescription& description() const { return description_; }

  /// Reads the operands (null where absent), writes the results. They overlap neither each other nor the scratch. One thread at a time.
  virtual void execute(std::span<const void* const> operands, std::span<void* const> results, void* scratch) = 0;

 protected:
  LibraryCall() = default;
  LibraryDescription description_;
};

struct LibraryRow {
  std::string_view name;
  /// Of which device's libraries it is a call: then make() plays it on the host, with oneDNN. Empty: it is the host's own.
  std::string_view device_library = {};
  std::string_view doc;                         ///< operands, results, attributes, meaning
  const CallRules* rules;                       ///< operands, results and attributes that it takes: what a plan is held against when it is opened
  /// Of a call that the rules allow: "", or which sizes do not go together.
  std::string (*fits)(const LibrarySpec& spec);
  int opaque_operand = -1, opaque_result = -1;  ///< which one has the library's own layout; -1: none
  std::string_view thread_sums = {};            ///< which of its sums have as many parts as there are threads, so that last bits differ; empty: none
  /// Multiplications and additions of a call, roughly.
  double (*operations)(const LibrarySpec& spec);
  /// Scratch without which the device's library does not even a piece of the call, where that is more than device_scratch() gives for its tensors' sizes.
  std::size_t (*least_scratch)(const LibrarySpec& spec) = nullptr;
  /// For OpenMP's current number of threads, of a call of which why_not() says nothing.
  std::unique_ptr<LibraryCall> (*create)(const LibrarySpec& spec);

  /// By the rules, and then by sizes: why it cannot be called so, "" if it can.
  std::string why_not(const LibrarySpec& spec) const;
  /// create(), with every failure told by row and shapes: InternalError where why_not() says something; Error kPlanMismatch for what the library refuses, kMemory when memory runs out.
  /// Calls with an empty tensor are made here, for all rows: a sum over nothing is zero.
  std::unique_ptr<LibraryCall> make(const LibrarySpec& spec) const;
  LibraryDescription describe(const LibrarySpec& spec) const { return make(spec)->description(); }
};

/// What a call of a device's library may take of scratch. A library that asks for more is not called: so the peak is known when compiling, wherever the plan will run.
std::size_t device_scratch(const LibrarySpec& spec);
std::size_t device_scratch(const LibraryRow& row, const LibrarySpec& spec);  ///< that, or what the row needs at least
/// Is an operand or a result without elements?
bool has_empty_tensor(const LibraryRow& row, const LibrarySpec& spec);

std::span<const LibraryRow> library_rows();
/// Null if there is none.
const LibraryRow* find_library_row(std::string_view name);

}  // namespace hone
