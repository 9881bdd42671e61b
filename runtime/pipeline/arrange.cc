// Which examples come, and in which order: shuffle, slices of a pass, repetition, interleaving.
#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "runtime/data/order.h"
#include "runtime/pipeline/choosing_stage.h"
#include "runtime/pipeline/dataset.h"
#include "runtime/pipeline/stages.h"

namespace hone {

namespace {

// ---- shuffle

template <typename Element>
class ShuffleStream : public ElementStream<Element> {
 public:
  /// `length`: of `from`, where it is known.
  ShuffleStream(std::unique_ptr<ElementStream<Element>> from, std::optional<std::int64_t> length, std::int64_t buffer, std::int64_t seed, std::uint64_t pass)
      : from_(std::move(from)), buffer_(buffer), random_(static_cast<std::uint64_t>(seed), pass) {
    constexpr std::int64_t kMostAtOnce = std::int64_t{1} << 20;  // a buffer may be said to be larger than it ever gets
    if (length) held_.reserve(static_cast<std::size_t>(std::min({*length, buffer, kMostAtOnce})));
  }
  bool next(Element* element) override {
    fill();
    if (held_.empty()) return false;
    Element& drawn = held_[random_.below(held_.size())];
    *element = std::move(drawn);
    if (ended_ or not from_->next(&drawn)) {
      ended_ = true;
      if (&drawn != &held_.back()) drawn = std::move(held_.back());
      held_.pop_back();
    }
    return true;
  }
  std::size_t next_many(std::span<Element> to) override {
    std::size_t done = 0;
    while (done < to.size() and ShuffleStream::next(&to[done])) ++done;
    return done;
  }

 private:
  void fill() {
    constexpr std::int64_t kAtATime = std::is_same_v<Element, std::int64_t> ? 1024 : 1;  // making examples may fail, and those made before stay
    while (not ended_ and static_cast<std::int64_t>(held_.size()) < buffer_) {
      more_.resize(static_cast<std::size_t>(std::min(kAtATime, buffer_ - static_cast<std::int64_t>(held_.size()))));
      const std::size_t count = from_->next_many(more_);
      ended_ = count < more_.size();
      held_.insert(held_.end(), std::make_move_iterator(more_.begin()), std::make_move_iterator(more_.begin() + static_cast<std::ptrdiff_t>(count)));
    }
  }

  std::unique_ptr<ElementStream<Element>> from_;
  std::int64_t buffer_;
  RandomWords random_;
  std::vector<Element> held_, more_;
  bool ended_ = false;
};

class ShuffleStage : public ChoosingStage<ShuffleStage> {
 public:
  ShuffleStage(StagePointer from, std::int64_t buffer, std::int64_t seed) : ChoosingStage(std::move(from)), buffer_(buffer), seed_(seed) {}
  template <typename Element>
  std::unique_ptr<ElementStream<Element>> stream(std::uint64_t pass) const {
    return std::make_unique<ShuffleStream<Element>>(open_as<Element>(*from_, pass), from_->length(), buffer_, seed_, pass);
  }
  std::optional<std::int64_t> length() const override { return from_->length(); }
  Endless endless() const override { return from_->endless(); }

 private:
  std::int64_t buffer_, seed_;
};

// ---- slices: take, skip, shard

struct Slice {
  std::int64_t first = 0, step = 1;
  std::optional<std::int64_t> count;
};

template <typename Element>
class SliceStream : public ElementStream<Element> {
 public:
  SliceStream(std::unique_ptr<ElementStream<Element>> from, Slice slice) : from_(std::move(from)), slice_(slice), before_(slice.first) {}
  bool next(Element* element) override {
    if (slice_.count and given_ >= *slice_.count) return false;
    if (from_->skip(before_) < before_ or not from_->next(element)) return false;
    before_ = slice_.step - 1;
    ++given_;
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    if (slice_.count) count = std::min(count, *slice_.count - given_);
    if (slice_.step > 1) return ElementStream<Element>::skip(count);
    if (count <= 0 or from_->skip(before_) < before_) return 0;
    before_ = 0;
    const std::int64_t done = from_->skip(count);
    given_ += done;
    return done;
  }

 private:
  std::unique_ptr<ElementStream<Element>> from_;
  Slice slice_;
  std::int64_t before_;  // to pass over before the next
  std::int64_t given_ = 0;
};

class SliceStage : public ChoosingStage<SliceStage> {
 public:
  SliceStage(StagePointer from, Slice slice) : ChoosingStage(std::move(from)), slice_(slice) {}
  template <typename Element>
  std::unique_ptr<ElementStream<Element>> stream(std::uint64_t pass) const {
    return std::make_unique<SliceStream<Element>>(open_as<Element>(*from_, pass), slice_);
  }
  std::optional<std::int64_t> length() const override {
    if (slice_.count == 0 or from_->endless() == Endless::kSurely) return slice_.count;
    const auto before = from_->length();
    if (not before) return std::nullopt;
    const std::int64_t left = std::max<std::int64_t>(0, *before - slice_.first);
    const std::int64_t all = left / slice_.step + (left % slice_.step != 0 ? 1 : 0);
    return slice_.count ? std::min(all, *slice_.count) : all;
  }
  Endless endless() const override { return slice_.count ? Endless::kNo : from_->endless(); }

 private:
  Slice slice_;
};

// ---- repetition

/// Pass p of `count` repetitions is the passes p * count, p * count + 1, ... of what is repeated; without an end, p * 2^32 and so on.
template <typename Element>
class RepeatStream : public ElementStream<Element> {
 public:
  RepeatStream(const Stage& from, std::optional<std::int64_t> count, std::uint64_t pass)
      : from_(from), count_(count), length_(from.length().value_or(0)), first_(count ? pass * static_cast<std::uint64_t>(*count) : pass << 32) {}
  bool next(Element* element) override {
    while (open()) {
      if (now_->next(element)) return any_ = true;
      end_pass();
    }
    return false;
  }
  std::int64_t skip(std::int64_t count) override {
    std::int64_t done = now_ ? 0 : skip_passes(count);
    while (done < count and open()) {
      const std::int64_t now = now_->skip(count - done);
      any_ = any_ or now > 0;
      done += now;
      if (done < count) {
        end_pass();
        done += skip_passes(count - done);
      }
    }
    return done;
  }

 private:
  bool open() {
    if (ended_ or (count_ and number_ == *count_)) return false;
    if (not now_) now_ = open_as<Element>(from_, first_ + static_cast<std::uint64_t>(number_)), any_ = false;
    return true;
  }
  /// Whole ones, as many as there are in `count` examples, where that is known. How many examples they have.
  std::int64_t skip_passes(std::int64_t count) {
    if (length_ == 0 or ended_) return 0;
    const std::int64_t passes = std::min(count / length_, count_ ? *count_ - number_ : std::numeric_limits<std::int64_t>::max());
    number_ += passes;
    return passes * length_;
  }
  /// What is empty once is empty always: it would be repeated for ever.
  void end_pass() {
    ended_ = not any_;
    now_.reset();
    ++number_;
  }

  const Stage& from_;
  std::optional<std::int64_t> count_;
  std::int64_t length_;  // of a pass; 0: not known
  std::uint64_t first_;
  std::int64_t number_ = 0;
  std::unique_ptr<ElementStream<Element>> now_;
  bool any_ = false, ended_ = false;
};

class RepeatStage : public ChoosingStage<RepeatStage> {
 public:
  RepeatStage(StagePointer from, std::optional<std::int64_t> count) : ChoosingStage(std::move(from)), count_(count) {}
  template <typename Element>
  std::unique_ptr<ElementStream<Element>> stream(std::uint64_t pass) const {
    return std::make_unique<RepeatStream<Element>>(*from_, count_, pass);
  }
  std::optional<std::int64_t> length() const override {
    const auto once = from_->length();
    if (once == 0) return once;
    return once and count_ ? std::optional(checked_multiply(*once, *count_, "the examples of a data set")) : std::nullopt;
  }
  Endless endless() const override {
    const auto once = from_->length();
    if (count_ or once == 0 or from_->endless() == Endless::kSurely) return from_->endless();
    return once ? Endless::kSurely : Endless::kUnlessEmpty;
  }

 private:
  std::optional<std::int64_t> count_;
};

// ---- interleaving

/// As in tf.data: an example that has ended leaves its place empty until its turn comes again.
class InterleaveStream : public ExampleStream {
 public:
  InterleaveStream(std::unique_ptr<ExampleStream> from, const std::function<StagePointer(const Example&)>& open, std::int64_t cycle, std::int64_t block,
                   std::uint64_t pass)
      : from_(std::move(from)), open_(open), places_(static_cast<std::size_t>(cycle)), block_(block), pass_(pass) {}
  bool next(Example* example) override {
    while (true) {
      Place& place = places_[turn_];
      if (not place and not fill(place)) {
        if (std::none_of(places_.begin(), places_.end(), [](const Place& each) { return each.has_value(); })) return false;
        end_turn();
      } else if (place->next(example)) {
        if (++in_block_ == block_) end_turn();
        return true;
      } else {
        place.reset();
        end_turn();
      }
    }
  }

 private:
  using Place = std::optional<ExampleIterator>;
  bool fill(Place& place) {
    Example example;
    if (ended_ or not from_->next(&example)) {
      ended_ = true;
      return false;
    }
    StagePointer stage = for_example("interleave", number_++, [&] { return open_(example); });
    place.emplace(std::move(stage), pass_);
    return true;
  }
  void end_turn() {
    turn_ = (turn_ + 1) % places_.size();
    in_block_ = 0;
  }

  std::unique_ptr<ExampleStream> from_;
  const std::function<StagePointer(const Example&)>& open_;
  std::vector<Place> places_;
  std::int64_t block_;
  std::uint64_t pass_;
  std::size_t turn_ = 0;
  std::int64_t in_block_ = 0, number_ = 0;
  bool ended_ = false;
};

class InterleaveStage : public Stage {
 public:
  InterleaveStage(StagePointer from, std::function<StagePointer(const Example&)> open, std::int64_t cycle, std::int64_t block)
      : from_(std::move(from)), open_(std::move(open)), cycle_(cycle), block_(block) {}
  std::unique_ptr<ExampleStream> open(std::uint64_t pass) const override {
    return std::make_unique<InterleaveStream>(from_->open(pass), open_, cycle_, block_, pass);
  }
  std::optional<std::int64_t> length() const override { return std::nullopt; }

 private:
  StagePointer from_;
  std::function<StagePointer(const Example&)> open_;
  std::int64_t cycle_, block_;
};

}  // namespace

StagePointer shuffle_stage(StagePointer from, std::int64_t buffer, std::int64_t seed) { return std::make_shared<ShuffleStage>(std::move(from), buffer, seed); }

StagePointer slice_stage(StagePointer from, std::int64_t first, std::int64_t step, std::optional<std::int64_t> count) {
  return std::make_shared<SliceStage>(std::move(from), Slice{first, step, count});
}

StagePointer repeat_stage(StagePointer from, std::optional<std::int64_t> count) { return std::make_shared<RepeatStage>(std::move(from), count); }

StagePointer interleave_stage(StagePointer from, std::function<StagePointer(const Example&)> open, std::int64_t cycle, std::int64_t block) {
  return std::make_shared<InterleaveStage>(std::move(from), std::move(open), cycle, block);
}

}  // namespace hone
