// What a training loop takes its batches from: arrays (batches.h) or a pipeline (dataset_batches.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/session.h"

namespace hone {

using NamedViews = std::vector<std::pair<std::string, TensorView>>;

/// Samples [begin, end) of a batch.
struct BatchPart {
  std::int64_t begin = 0, end = 0;
};

/// Batches of an epoch, one after the other, each fed to an entry by name. What an epoch holds is a function of its number, so that it can be entered anywhere.
class BatchSource {
 public:
  BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;
  virtual ~BatchSource() = default;

  /// Batches of an epoch; nothing if that is not known before its end.
  virtual std::optional<std::int64_t> known_batch_count() const = 0;
  /// Is there always another one?
  virtual bool is_endless() const { return false; }
  /// What the batches of an epoch follow from, in words: "60000 samples in batches of 64, shuffled with seed 0". Where the words differ, the batches may.
  virtual std::string order() const = 0;
  /// The same for what lies in them: another text where the data are seen to be others; empty where that cannot be told beforehand.
  virtual std::string data_hash() const { return ""; }
  /// Goes to the beginning of `epoch`, or to its batch `first_batch`. Whatever reading throws.
  virtual void start_epoch(std::int64_t epoch, std::int64_t first_batch = 0) = 0;
  /// Makes the next batch; false at the end of the epoch. Throws what is wrong with the data.
  virtual bool next() = 0;
  /// What the following next() of this epoch will make, where that is made ahead, without what add_feed() adds; null at the end, and where it is not. Valid until the next() after that one.
  virtual const NamedViews* ahead() { return nullptr; }
  /// The number of samples of what the last next() made; when pre-batched the slice's first extent.
  virtual std::int64_t size() const = 0;
  /// Where row `row` of what the last next() made for `feed` comes from: "row 8123 of x.npy"; empty where that is not known.
  virtual std::string place_of(std::string_view /*feed*/, std::int64_t /*row*/) const { return ""; }

  /// What the last next() made, by feed name; valid until the following one.
  const NamedViews& feeds() const { return feeds_; }
  /// Adds a feed that is the same for every batch, such as the learning rate: the caller's memory, which may change between batches.
  void add_feed(const std::string& name, TensorView view) { feeds_.emplace_back(name, std::move(view)); }

 protected:
  NamedViews feeds_;  // the batch's own first
};

}  // namespace hone
