#include "backends/panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "backends/panel_kernels.h"
#include "base/check.h"
#include "base/text.h"

namespace hone {

namespace {

using plan::Buffer;
using plan::Entry;
using plan::KernelStep;
using plan::Panels;
using plan::Step;

/// What becomes of the steps that touch some tensors, once it is known that all of them can.
class Change {
 public:
  Change(const Shape& shape, const Panels& panels, KernelSet& kernels) : shape_(shape), panels_(panels), kernels_(kernels) {}

  /// `touched`: buffers of the entry that show one of the tensors. If something else than a kernel touches one, or a kernel that cannot, tells why not.
  void add(Entry& entry, const std::set<std::uint32_t>& touched) {
    for (std::uint32_t i = 0; i < entry.buffers.size(); ++i)
      if (entry.buffers[i].storage == Buffer::Storage::kView and touched.contains(entry.buffers[i].index) and not touched.contains(i)) return refuse("it is read under another shape", entry);
    for (const plan::Result& result : entry.results)
      if (touched.contains(result.buffer)) return refuse("it is a result", entry);
    for (Step& step : entry.steps) {
      std::vector<std::uint32_t> numbers;  // of the kernel's buffers
      const auto* call = std::get_if<KernelStep>(&step.what);
      for (std::uint32_t i = 0; call != nullptr and i < call->buffers.size(); ++i)
        if (touched.contains(call->buffers[i])) numbers.push_back(i);
      bool otherwise = false;
      const bool is_exchange = std::holds_alternative<plan::AllReduceStep>(step.what);  // in any layout, if it is the same everywhere
      if (call == nullptr and not is_exchange) plan::for_each_buffer(step, [&](std::uint64_t buffer, plan::Access) { otherwise = otherwise or touched.contains(static_cast<std::uint32_t>(buffer)); });
      if (otherwise) return refuse("no kernel reads it: " + step.origin, entry);
      if (numbers.empty()) continue;
      auto made = over_panels(kernels_.find(call->symbol), numbers, shape_, panels_);
      if (not made) return refuse("a kernel works out where it reads: " + step.origin, entry);
      calls_.emplace_back(&step, std::move(*made));
    }
    for (const std::uint32_t buffer : touched) buffers_.push_back(&entry.buffers[buffer]);
  }
  const std::string& why_not() const { return why_not_; }

  void apply() {
    for (auto& [step, kernel] : calls_) {
      auto& call = std::get<KernelStep>(step->what);
      kernel.name = call.symbol.substr(0, call.symbol.rfind('_'));  // the set numbers it
      const KernelCall made = kernels_.add(std::move(kernel));
      HONE_CHECK(made.buffers.size() == call.buffers.size(), "a kernel in panels touches other buffers");
      call = {made.symbol, call.buffers, made.sizes, made.range, made.work, call.read_only};
    }
    for (Buffer* buffer : buffers_) buffer->shape = plan::panel_shape(buffer->shape, panels_);
  }

 private:
  void refuse(const std::string& reason, const Entry& entry) {
    if (why_not_.empty()) why_not_ = fmt::format("{} ({})", reason, entry.name);
  }

  const Shape shape_;
  const Panels panels_;
  KernelSet& kernels_;
  std::string why_not_;
  std::vector<std::pair<Step*, Kernel>> calls_;
  std::vector<Buffer*> buffers_;
};

/// The entry and all bodies in it.
void for_each_entry(Entry& entry, const std::function<void(Entry&)>& visit) {
  visit(entry);
  for (Step& step : entry.steps)
    if (auto* region = std::get_if<plan::RegionStep>(&step.what))
      for (Entry& body : region->bodies) for_each_entry(body, visit);  // the verifier limits the depth
}

/// The buffers that show some of the entry's feeds, or of the persistent tensors.
std::set<std::uint32_t> buffers_of(const Entry& entry, Buffer::Storage storage, const std::set<std::uint32_t>& shown) {
  std::set<std::uint32_t> buffers;
  for (std::uint32_t i = 0; i < entry.buffers.size(); ++i)
    if (entry.buffers[i].storage == storage and shown.contains(entry.buffers[i].index)) buffers.insert(i);
  return buffers;
}

/// Calls visit(call, number of the kernel's buffer) where a kernel touches one of `buffers`.
void for_each_touch(const Entry& entry, const std::set<std::uint32_t>& buffers, const std::function<void(const KernelStep&, std::uint32_t)>& visit) {
  for (const Step& step : entry.steps)
    if (const auto* call = std::get_if<KernelStep>(&step.what))
      for (std::uint32_t i = 0; i < call->buffers.size(); ++i)
        if (buffers.contains(call->buffers[i])) visit(*call, i);
}

class WeightLayout {
 public:
  WeightLayout(std::vector<Entry>& entries, std::vector<plan::Persistent>& persistents, KernelSet& kernels)
      : entries_(entries), persistents_(persistents), kernels_(kernels) {}

  std::vector<std::string> run() {
    std::vector<std::string> lines;
    for (std::uint32_t weight = 0; weight < persistents_.size(); ++weight) {
      if (persistents_[weight].role != plan::Persistent::Role::kWeight or persistents_[weight].panels) continue;
      const std::optional<Panels> panels = wanted(weight);
      if (not panels) continue;
      const std::set<std::uint32_t> group = updated_alike(weight);
      const std::string name = printable(persistents_[weight].name);
      std::string why_not = try_to_lay_out(weight, group, *panels, Gradients::kToo);
      if (not why_not.empty()) why_not = try_to_lay_out(weight, group, *panels, Gradients::kLeftOut);
      if (not why_not.empty()) {
        lines.push_back(fmt::format("{}: row by row, because {}", name, why_not));
        continue;
      }
      for (const std::uint32_t member : group) persistents_[member].panels = panels;
      lines.push_back(fmt::format("{}: in panels of {} along axis {}, and {} states with it", name, panels->width, panels->axis, group.size() - 1));
    }
    return lines;
  }

 private:
  enum class Gradients : std::uint8_t { kToo, kLeftOut };

  /// Why the weight and the states with it cannot lie so; empty: they do. With gradients those that are exchanged do, too, so that an update walks all memory in its order.
  std::string try_to_lay_out(std::uint32_t weight, const std::set<std::uint32_t>& group, const Panels& panels, Gradients gradients) {
    Change change(shape_of(persistents_[weight].initial.shape()), panels, kernels_);
    for_each([&](Entry& entry) {
      std::set<std::uint32_t> touched = persistents_in(entry, group);
      if (gradients == Gradients::kToo) touched.merge(exchanged_for(entry, weight));
      change.add(entry, touched);
    });
    if (change.why_not().empty()) change.apply();
    return change.why_not();
  }

  /// The buffers that show what is exchanged, lies in the arena with the weight's shape, and is read where the weight is stored.
  std::set<std::uint32_t> exchanged_for(const Entry& entry, std::uint32_t weight) const {
    const Shape shape = shape_of(persistents_[weight].initial.shape());
    std::set<std::uint32_t> exchanged, roots, shown;
    for (const Step& step : entry.steps)
      if (const auto* exchange = std::get_if<plan::AllReduceStep>(&step.what))
        for (const std::uint32_t buffer : exchange->buffers) exchanged.insert(plan::root_of(entry, buffer));
    if (exchanged.empty()) return {};
    for_each_touch(entry, persistents_in(entry, {weight}), [&](const KernelStep& call, std::uint32_t number) {
      for (std::uint32_t i = 0; number >= call.read_only and i < call.read_only; ++i) {
        const std::uint32_t root = plan::root_of(entry, call.buffers[i]);
        if (exchanged.contains(root) and entry.buffers[root].storage == Buffer::Storage::kArena and entry.buffers[root].shape == shape) roots.insert(root);
      }
    });
    for (std::uint32_t i = 0; not roots.empty() and i < entry.buffers.size(); ++i)
      if (roots.contains(plan::root_of(entry, i)) and entry.buffers[i].shape == shape) shown.insert(i);
    return shown;
  }

  void for_each(const std::function<void(Entry&)>& visit) {
    for (Entry& entry : entries_) for_each_entry(entry, visit);
  }

  static std::set<std::uint32_t> persistents_in(const Entry& entry, const std::set<std::uint32_t>& group) {
    return buffers_of(entry, Buffer::Storage::kPersistent, group);
  }

  /// By the first product that reads the weight, which is one of the forward pass.
  std::optional<Panels> wanted(std::uint32_t weight) {
    std::optional<Panels> panels;
    for_each([&](Entry& entry) {
      for_each_touch(entry, persistents_in(entry, {weight}), [&](const KernelStep& call, std::uint32_t buffer) {
        if (not panels) panels = panels_for(kernels_.find(call.symbol), buffer);
      });
    });
    return panels;
  }

  /// The weight, and the states of its shape that a kernel touches as it stores the weight.
  std::set<std::uint32_t> updated_alike(std::uint32_t weight) {
    std::set<std::uint32_t> group = {weight};
    for_each([&](Entry& entry) {
      for_each_touch(entry, persistents_in(entry, {weight}), [&](const KernelStep& call, std::uint32_t number) {
        if (number < call.read_only) return;
        for (const std::uint32_t other : call.buffers) {
          const Buffer& buffer = entry.buffers[other];
          if (buffer.storage != Buffer::Storage::kPersistent) continue;
          const plan::Persistent& state = persistents_[buffer.index];
          if (state.role == plan::Persistent::Role::kState and state.initial.shape() == persistents_[weight].initial.shape()) group.insert(buffer.index);
        }
      });
    });
    return group;
  }

  std::vector<Entry>& entries_;
  std::vector<plan::Persistent>& persistents_;
  KernelSet& kernels_;
};

}  // namespace

std::vector<std::string> lay_out_in_panels(std::vector<plan::Entry>& entries, std::vector<plan::Persistent>& persistents, KernelSet& kernels) {
  return WeightLayout(entries, persistents, kernels).run();
}

std::optional<plan::Panels> lay_out_feed_in_panels(plan::Entry& body, std::uint32_t feed, KernelSet& kernels) {
  const std::set<std::uint32_t> shown = buffers_of(body, Buffer::Storage::kFeed, {feed});
  std::optional<Panels> panels;
  for_each_touch(body, shown, [&](const KernelStep& call, std::uint32_t buffer) {
    if (not panels) panels = panels_for(kernels.find(call.symbol), buffer);
  });
  if (not panels) return std::nullopt;
  Change change(body.feeds[feed].shape, *panels, kernels);
  change.add(body, shown);
  if (not change.why_not().empty()) return std::nullopt;
  change.apply();
  body.feeds[feed].shape = plan::panel_shape(body.feeds[feed].shape, *panels);
  return panels;
}

}  // namespace hone
