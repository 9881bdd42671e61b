// Parameters that were folded: constant folding makes an initializer of each view and of each function of a parameter. Those that are views of what the file
// has besides are made of it again, so that both are trained as the one parameter that they are. Known by the exporter's record, found by their elements.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <unordered_map>

#include "base/text.h"
#include "frontend/onnx/exporter.h"
#include "frontend/onnx/mend_model.h"

namespace hone::onnx {

namespace {

// --- Which elements of others a tensor has ---

/// Elements of floats, without their meaning.
class Elements {
 public:
  void append(const Tensor& tensor, bool negated = false) {
    const std::size_t size = size_of(tensor.dtype());
    const std::uint64_t sign = negated ? std::uint64_t{1} << (8 * size - 1) : 0;
    const auto count = static_cast<std::size_t>(tensor.element_count());
    bits_.reserve(bits_.size() + count);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, tensor.bytes().data() + i * size, size);
      bits_.push_back(bits ^ sign);
    }
  }
  std::size_t size() const { return bits_.size(); }
  std::uint64_t operator[](std::size_t i) const { return bits_[i]; }
  bool operator==(const Elements&) const = default;
  bool are_all_equal() const { return std::adjacent_find(bits_.begin(), bits_.end(), std::not_equal_to<>()) == bits_.end(); }

 private:
  std::vector<std::uint64_t> bits_;
};

using Positions = std::vector<std::int64_t>;
constexpr std::int64_t kNowhere = -1, kSeveral = -2;

/// By element, where it stands: once, or kSeveral.
using Places = std::unordered_map<std::uint64_t, std::int64_t>;

Places places_of(const Elements& source) {
  Places places;
  for (std::size_t i = 0; i < source.size(); ++i)
    if (const auto [found, is_new] = places.emplace(source[i], static_cast<std::int64_t>(i)); not is_new) found->second = kSeveral;
  return places;
}

/// Where each element of `view` stands; kNowhere if it does not.
Positions places_in(const Places& places, const Elements& view) {
  Positions positions(view.size(), kNowhere);
  for (std::size_t i = 0; i < view.size(); ++i)
    if (const auto found = places.find(view[i]); found != places.end()) positions[i] = found->second;
  return positions;
}

/// Positions that follow from those of elements that stand there once: linear in the view's coordinates. Nothing where they do not tell a step of each axis.
std::optional<Positions> linear_positions(const Positions& places, const std::vector<std::int64_t>& shape) {
  Positions strides(shape.size(), 1), steps(shape.size(), 0);
  for (std::size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  const auto count = static_cast<std::int64_t>(places.size());
  const auto place = [&](std::int64_t i) { return places[static_cast<std::size_t>(i)]; };
  const auto coordinate = [&](std::int64_t i, std::size_t axis) { return i / strides[axis] % shape[axis]; };
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    std::int64_t i = 0;
    const auto tells_step = [&] { return coordinate(i, axis) + 1 < shape[axis] and place(i) >= 0 and place(i + strides[axis]) >= 0; };
    while (i < count and shape[axis] > 1 and not tells_step()) ++i;
    if (i == count) return std::nullopt;
    if (shape[axis] > 1) steps[axis] = place(i + strides[axis]) - place(i);
  }
  const auto known = std::find_if(places.begin(), places.end(), [](std::int64_t position) { return position >= 0; });
  if (known == places.end()) return std::nullopt;
  const auto from_first = [&](std::int64_t i) {
    std::int64_t position = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) position += steps[axis] * coordinate(i, axis);
    return position;
  };
  const std::int64_t first = *known - from_first(known - places.begin());
  Positions positions(places.size());
  for (std::int64_t i = 0; i < count; ++i) positions[static_cast<std::size_t>(i)] = first + from_first(i);
  return positions;
}

/// Are the view's elements those at the positions?
bool are_at(const Elements& source, const Elements& view, const Positions& positions) {
  const auto size = static_cast<std::int64_t>(source.size());
  for (std::size_t i = 0; i < positions.size(); ++i)
    if (positions[i] < 0 or positions[i] >= size or source[static_cast<std::size_t>(positions[i])] != view[i]) return false;
  return true;
}

// --- Views by what the exporter calls them ---

/// The operator that gave a value, by the name that torch.export gave the value: "slice_2" is the third slice.
std::string_view operator_of(std::string_view value) {
  const std::size_t end = value.find_last_not_of("0123456789");
  return end != std::string_view::npos and end + 1 < value.size() and value[end] == '_' ? value.substr(0, end) : value;
}

/// Operators of PyTorch that give elements as they are, in the order in which they were or in another.
constexpr std::string_view kKeepingOrder[] = {"view",    "_unsafe_view", "reshape", "unsqueeze", "squeeze",
                                              "flatten", "unflatten",    "alias",   "clone",     "contiguous"};
constexpr std::string_view kMoving[] = {
    "permute",      "transpose", "t",      "numpy_t",    "movedim",  "swapaxes", "slice",  "select", "split", "split_with_sizes",
    "chunk",        "getitem",   "unbind", "narrow",     "cat",      "stack",    "concat", "flip",   "roll",  "index",
    "index_select", "gather",    "unfold", "as_strided", "diagonal", "hstack",   "vstack", "neg"};
/// Those that give some of them several times: there, each would be trained by itself.
constexpr std::string_view kRepeating[] = {"expand", "expand_as", "broadcast_to", "repeat", "repeat_interleave", "tile"};

bool is_among(std::span<const std::string_view> operators, std::string_view value) {
  return std::ranges::find(operators, operator_of(value)) != operators.end();
}
bool has_name_of_view(std::string_view value) {
  return value.starts_with("val_") or is_among(kKeepingOrder, value) or is_among(kMoving, value) or is_among(kRepeating, value);
}

// --- Weights that have parameters in them ---

/// How a view is read: the positions in its sources' elements, one source behind the other, and whether they are negated.
struct View {
  std::vector<std::string> sources;
  Positions positions;
  bool negated = false;
};

struct Match {
  std::optional<View> view;
  bool shares_elements = false;  ///< where it is no view
};

std::int64_t element_count(const MendModel& m, const std::string& name) {
  std::int64_t count = 1;
  for (const std::int64_t extent : m.initializer(name)->dims())
    if (extent < 0 or __builtin_mul_overflow(count, extent, &count)) return 0;  // the importer refuses it
  return count;
}

/// Is the weight, by its name and its elements, a view of those of the sources?
Match match(const MendModel& m, const std::string& name, const Tensor& values, const std::vector<std::string>& sources) {
  constexpr std::int64_t kMostSearched = std::int64_t{1} << 23;
  constexpr std::ptrdiff_t kFewByChance = 16;  // one element of so many
  std::int64_t searched = 0;
  for (const std::string& source : sources) searched = std::max(searched, element_count(m, source));
  if (searched > kMostSearched) return {};
  Elements source;
  for (const std::string& part : sources) {
    const auto elements = m.values(part);
    if (not elements or elements->dtype() != values.dtype()) return {};
    source.append(*elements);
  }
  const bool tells_nothing = source.size() > 1 and source.are_all_equal();
  std::optional<Places> places;  // where they are asked for
  bool shares_elements = false;
  for (const bool negated : {false, true}) {
    View view{sources, Positions(static_cast<std::size_t>(values.element_count())), negated};
    Elements elements;
    elements.append(values, negated);
    std::iota(view.positions.begin(), view.positions.end(), 0);
    if (elements == source and (not tells_nothing or is_among(kKeepingOrder, name))) return {std::move(view)};
    if (tells_nothing) continue;
    if (not places) places = places_of(source);
    view.positions = places_in(*places, elements);
    const auto missing = std::ranges::count(view.positions, kNowhere), found = std::ssize(view.positions) - missing;
    shares_elements = shares_elements or found * kFewByChance > std::ssize(view.positions);
    if (missing > 0) continue;
    if (are_at(source, elements, view.positions)) return {std::move(view)};
    const auto linear = linear_positions(view.positions, values.shape());
    if (not linear or not are_at(source, elements, *linear)) continue;
    view.positions = *linear;
    return {std::move(view)};
  }
  return {std::nullopt, shares_elements};
}

/// A view of one of the sources, or else of all of them.
Match match_any(const MendModel& m, const std::string& name, const std::vector<std::string>& sources) {
  if (sources.empty() or not has_name_of_view(name)) return {};
  const auto values = m.values(name);
  if (not values or values->element_count() == 0) return {};
  Match all;
  for (const std::string& source : sources) {
    Match one = match(m, name, *values, {source});
    if (one.view) return one;
    all.shares_elements = all.shares_elements or one.shares_elements;
  }
  return sources.size() < 2 or not all.shares_elements ? all : match(m, name, *values, sources);
}

class ViewBuilder {
 public:
  ViewBuilder(MendModel& m, const std::string& name, const View& view)
      : m_(m), name_(name), shape_(m.initializer(name)->dims().begin(), m.initializer(name)->dims().end()), view_(view) {}

  void build() {
    m_.remove_weight(name_);
    if (not view_.negated) return read(name_);
    const std::string positive = m_.take_name(name_ + "/positive");
    read(positive);
    m_.add_node("Neg", {positive}, name_);
  }

 private:
  /// Reads whole runs by Slice, and else element by element.
  void read(const std::string& result) {
    const Positions& positions = view_.positions;
    const std::string flat = in_a_row();
    const bool is_run = std::adjacent_find(positions.begin(), positions.end(), [](std::int64_t a, std::int64_t b) { return b != a + 1; }) == positions.end();
    if (not is_run) return void(m_.add_node("Gather", {flat, integers("positions", positions, shape_)}, result));
    const std::string run = m_.take_name(name_ + "/run");
    m_.add_node("Slice", {flat, integers("begin", {positions.front()}), integers("end", {positions.back() + 1})}, run);
    m_.add_node("Reshape", {run, integers("shape", shape_)}, result);
  }
  std::string in_a_row() {
    std::vector<std::string> flat;
    for (const std::string& source : view_.sources) {
      flat.push_back(m_.take_name(name_ + "/flat"));
      m_.add_node("Reshape", {source, integers("flat shape", {-1})}, flat.back());
    }
    if (flat.size() == 1) return flat[0];
    const std::string row = m_.take_name(name_ + "/row");
    set(m_.add_node("Concat", flat, row), "axis", std::int64_t{0});
    return row;
  }
  std::string integers(const std::string& what, const std::vector<std::int64_t>& values) {
    return integers(what, values, {static_cast<std::int64_t>(values.size())});
  }
  std::string integers(const std::string& what, const std::vector<std::int64_t>& values, const std::vector<std::int64_t>& shape) {
    TensorProto tensor;
    store_tensor(&tensor, Tensor::of<std::int64_t>(shape, values));
    std::string name = m_.take_name(name_ + "/" + what);
    tensor.set_name(name);
    m_.add_weight(std::move(tensor));
    return name;
  }

  MendModel& m_;
  std::string name_;
  std::vector<std::int64_t> shape_;
  const View& view_;
};

std::string with_names(const std::string& name, const std::vector<std::string>& names) { return fmt::format("{} (of {})", quoted(name), list_of(names)); }

/// Weights with parameters in them, such that what others may be views of comes first: parameters as they are, then what has few parameters and many elements.
std::vector<std::string> with_parameters(const MendModel& m) {
  std::vector<std::string> names;
  for (std::string& name : m.weights())
    if (not m.program().parameters_in(name).empty()) names.push_back(std::move(name));
  std::ranges::stable_sort(names, std::less<>(), [&](const std::string& name) {
    return std::tuple(m.program().is_folded(name), m.program().parameters_in(name).size(), -element_count(m, name));
  });
  return names;
}

/// Weights that each parameter is in.
using ByParameter = std::map<std::string, std::vector<std::string>>;

/// What the weight may be a view of: what has only parameters in it that it has, too, and the recipe does not name as another one.
std::vector<std::string> sources_of(const MendModel& m, const std::string& name, const ByParameter& weights) {
  constexpr std::size_t kMost = 256;  // whoever makes a file chooses how many there are
  const std::set<std::string>& parameters = m.program().parameters_in(name);
  std::vector<std::string> sources;
  for (const std::string& parameter : parameters) {
    const auto found = weights.find(parameter);
    if (found == weights.end()) continue;
    for (const std::string& other : std::span(found->second).first(std::min(found->second.size(), kMost))) {
      const bool is_one_of = std::ranges::includes(parameters, m.program().parameters_in(other)) and *m.program().parameters_in(other).begin() == parameter;  // each comes once
      if (is_one_of and sources.size() < kMost and not(m.is_trained_by_name(name) and m.is_trained_by_name(other))) sources.push_back(other);
    }
  }
  return sources;
}

}  // namespace

void restore_views(MendModel& m) {
  if (not m.program().is_recorded()) return;
  ByParameter kept;
  std::vector<std::string> views, apart, computed;
  std::vector<std::pair<std::string, View>> to_build;
  for (const std::string& name : with_parameters(m)) {
    const std::set<std::string>& parameters = m.program().parameters_in(name);
    if (m.program().is_folded(name)) {
      const std::vector<std::string> sources = sources_of(m, name, kept);
      Match found = match_any(m, name, sources);
      if (found.view) {
        views.push_back(with_names(name, found.view->sources));
        to_build.emplace_back(name, std::move(*found.view));
        continue;
      }
      const bool is_function = not has_name_of_view(name) or is_among(kRepeating, name);
      const bool is_of_weight = std::ranges::any_of(sources, [&](const std::string& source) { return not m.program().is_folded(source); });
      if (is_of_weight or found.shares_elements) apart.push_back(with_names(name, sources));
      else if (is_function) computed.push_back(with_names(name, {parameters.begin(), parameters.end()}));
    }
    for (const std::string& parameter : parameters) kept[parameter].push_back(name);
  }
  for (const auto& [name, view] : to_build) ViewBuilder(m, name, view).build();
  const std::string way_out = "to train the parameters themselves, export without folding: torch.onnx.export(..., dynamo=True, optimize=False)";
  if (not views.empty())
    m.warn(fmt::format("by the exporter's account these are views of weights: {}; each is trained as one with its own", first_of(views)),
           {"if they are to be weights of their own, name both in model.train_only"});
  if (not apart.empty())
    m.warn(fmt::format("by the exporter's account these have in them what the model reads as other weights, too: {}; they are trained apart", first_of(apart)),
           {way_out});
  if (not computed.empty())
    m.warn(fmt::format("by the exporter's account these were computed from parameters: {}; what is trained are the results", first_of(computed)), {way_out});
}

}  // namespace hone::onnx
