#include "runtime/data/bound_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "base/diag.h"
#include "base/hash.h"
#include "base/text.h"
#include "runtime/data/as_bytes.h"

namespace hone {

namespace {

using plan::Feed;

bool is_target_word(std::string_view name) { return name == "y" or name == "target"; }

/// Weights of samples are what training is asked to heed; an evaluation may be without.
bool may_be_left_out(const plan::Entry& entry, const Feed& feed) { return entry.name == plan::kEvalStep and feed.kind == Feed::Kind::kSampleWeight; }

/// Rows of ones, which all lie in one place.
Array ones(const std::string& label, std::vector<std::int64_t> shape) {
  const std::int64_t count = shape.size() > 1 ? shape[1] : 1;
  const std::vector<float> row(static_cast<std::size_t>(count), 1.0F);
  const std::int64_t rows = shape[0];
  return {label, DType::kF32, std::move(shape), {{.bytes = std::make_shared<const RowBytes>(Tensor::of<float>({count}, std::span<const float>(row))), .row_count = rows, .offset = 0, .stride = 0, .offsets = {}}}};
}

/// What a user may call the feeds.
std::vector<std::string> feed_names(const plan::Entry& entry) {
  std::vector<std::string> names;
  for (const Feed& feed : entry.feeds)
    if (feed.kind == Feed::Kind::kTarget) names.emplace_back("target");
    else if (is_data(feed)) names.push_back(feed.name);
  return names;
}

/// "f32[N,784]"
std::string type_text(const Feed& feed) { return fmt::format("{}[{}]", to_string(feed.dtype), to_string(feed.shape)); }
std::string type_text(const Array& array) { return fmt::format("{}{}", to_string(array.dtype()), shape_text(array.shape())); }

/// "row 17, element [3]".
std::string place_text(const Array& array, const Array::Place& place, std::string_view row_word) {
  if (array.shape().empty()) return "its only element";
  const std::span<const std::int64_t> extents(std::span(array.shape()).subspan(1));
  std::vector<std::int64_t> position(extents.size());
  std::int64_t index = place.element;
  for (std::size_t axis = position.size(); axis-- > 0;) {
    position[axis] = index % extents[axis];
    index /= extents[axis];
  }
  const std::string row = array.name_of_row(place.row, row_word);
  return position.empty() ? row : row + ", element " + shape_text(position);
}

/// Row shape that `feed` wants for rows of `shape`, with the sizes that the feed leaves open taken from the rows. Nothing when they do not fit.
std::optional<std::vector<std::int64_t>> fit(const Shape& wanted, std::span<const std::int64_t> shape) {
  const auto matches = [](const Dim& dim, std::int64_t extent) { return not dim.is_constant() or dim.is_constant(extent); };
  if (wanted.size() == shape.size() and std::equal(wanted.begin(), wanted.end(), shape.begin(), matches)) return std::vector(shape.begin(), shape.end());
  std::vector<std::int64_t> result;
  if (is_constant(wanted)) {
    result = constant_shape(wanted);
    return is_same_but_for_grouping(shape, result) ? std::optional(result) : std::nullopt;
  }
  if (not wanted[0].is_constant() and not shape.empty()) {  // the batch of a pre-batched slice: what is behind it may be grouped otherwise
    if (auto behind = fit(Shape(wanted.begin() + 1, wanted.end()), shape.subspan(1))) {
      behind->insert(behind->begin(), shape[0]);
      return behind;
    }
  }
  std::vector<std::int64_t> rest;  // without axes of size 1, each must meet its axis
  for (const std::int64_t extent : shape)
    if (extent != 1) rest.push_back(extent);
  std::size_t at = 0;
  for (const Dim& dim : wanted) {
    if (dim.is_constant(1)) {
      result.push_back(1);
    } else {
      if (at == rest.size() or not matches(dim, rest[at])) return std::nullopt;
      result.push_back(rest[at++]);
    }
  }
  return at == rest.size() ? std::optional(result) : std::nullopt;
}

/// A row of numbers for each sample, where one number is wanted: the number of its class.
bool has_one_hot_shape(const Feed& feed, const Array& array) {
  return feed.kind == Feed::Kind::kTarget and not is_float(feed.dtype) and feed.shape.size() + 1 == array.shape().size();
}

/// What may be wrong with the shape of an array whose first axis is to be the sample. `files`: of a file, which NumPy mends.
std::vector<std::string> shape_notes(const Feed& feed, const Array& array, bool files) {
  const auto way_out = [files](const char* with_numpy, const char* in_program) { return files ? with_numpy : in_program; };
  const std::vector<std::int64_t>& shape = array.shape();
  if (shape.empty() or feed.shape.empty()) return {};
  const Shape wanted(feed.shape.begin() + 1, feed.shape.end());
  std::vector<std::int64_t> row(shape.begin() + 1, shape.end());
  if (shape.size() == feed.shape.size() and row.size() > 1) {  // images whose channels lie elsewhere
    std::vector<std::int64_t> moved = row;
    std::rotate(moved.begin(), moved.begin() + 1, moved.end());
    if (fit(wanted, moved)) return {way_out("its channels come first, and the model's last: numpy.moveaxis(x, 1, -1)", "its channels come first, and the model's last: map() a function over the samples that moves them, or nn::permute(x, {2, 3, 1}) in the model")};
    moved = row;
    std::rotate(moved.begin(), moved.end() - 1, moved.end());
    if (fit(wanted, moved)) return {way_out("its channels come last, and the model's first: numpy.moveaxis(x, -1, 1)", "its channels come last, and the model's first: take samples of that shape for its input, and nn::permute(x, {3, 1, 2}) behind it")};
  }
  if (feed.kind == Feed::Kind::kTarget and not is_float(array.dtype()) and fit({}, row) and not fit(wanted, row))
    return {fmt::format("are these numbers of classes? This loss compares each of the {} numbers of an output with a target; softmax_cross_entropy and cross_entropy take classes{}", element_count(wanted).text(), way_out(" (hone-compile --set loss.kind=...)", ""))};
  if (fit(wanted, shape)) return {way_out("this looks like one sample: numpy.expand_dims(x, 0) makes a data set of it", "one sample is given where a batch is wanted: batch(n) makes batches")};
  return {fmt::format("the first axis is the sample: a row of it is {}, and [{}] is wanted", shape_text(row), to_string(wanted))};
}

/// Is the array out of a table in text, by its label: "a.csv", "a.tsv:age"?
bool is_of_csv(const Array& array) {
  const std::string label = lower_case(array.label());
  return std::ranges::any_of(std::array{".csv", ".tsv"}, [&](std::string_view ending) { return label.ends_with(ending) or label.find(std::string(ending) + ":") != std::string::npos; });
}

NamedArrays open_all(const plan::Entry& entry, std::span<const DataSource> sources, FileReading reading) {
  NamedArrays arrays;
  Diags diags;
  for (DataSource source : sources) {
    if (const Feed* feed = find_feed(entry, source.name)) source.input = feed->name;
    try {
      arrays.emplace_back(source.name, Array::open(source, reading));
    } catch (const Error& error) { diags.append(error); }
  }
  diags.throw_if_errors();
  return arrays;
}

}  // namespace

const Feed* find_feed(const plan::Entry& entry, std::string_view name) {
  const Feed* only_input = nullptr;
  const Feed* target = nullptr;
  int inputs = 0;
  for (const Feed& feed : entry.feeds) {
    if (not is_data(feed)) continue;
    if (feed.name == name) return &feed;
    if (feed.kind == Feed::Kind::kTarget) target = &feed;
    else if (feed.kind == Feed::Kind::kModelInput) only_input = &feed, ++inputs;
  }
  if (name == "x" and inputs == 1) return only_input;
  return is_target_word(name) ? target : nullptr;
}

BoundArrays::BoundArrays(const plan::Entry& entry, std::span<const DataSource> sources, BindOptions options)
    : BoundArrays(entry, open_all(entry, sources, options.reading), std::move(options)) {}

BoundArrays::BoundArrays(const plan::Entry& entry, NamedArrays arrays, BindOptions options) : options_(std::move(options)) {
  check_scales(entry);
  match_names(entry, std::move(arrays));
  check_lengths();
  check_sizes();
  count_all_the_same(entry);
  Diags diags;
  for (const Column& column : columns_) {
    try {
      check_values(column.feed, column.array, options_.pre_batched ? "batch" : "row");
    } catch (const Error& error) { diags.append(error); }
  }
  diags.throw_if_errors();
}

/// An entry without a target leaves the target's factor aside: it is meant for another one.
void BoundArrays::check_scales(const plan::Entry& entry) {
  for (const auto& [name, factor] : options_.scale) {
    const Feed* feed = find_feed(entry, name);
    if (feed == nullptr and is_target_word(name)) continue;
    const auto names = feed_names(entry);
    if (feed == nullptr)
      throw Error(Code::kDataName, fmt::format("data.scale names {}, which is no input", quoted(name)), {},
                  {fmt::format("the inputs are {}", printable(join(names, ", "), 500))});
    if (not is_float(feed->dtype))
      throw Error(Code::kDataType, fmt::format("data.scale has a factor for {}, which takes {} and is not scaled", quoted(feed->name), to_string(feed->dtype)),
                  {}, {"take it out of data.scale"});
    scale_[feed->name] = factor;
  }
}

void BoundArrays::match_names(const plan::Entry& entry, NamedArrays arrays) {
  Diags diags;
  const std::vector<std::string> names = feed_names(entry);
  const bool has_target = std::find(names.begin(), names.end(), "target") != names.end();
  std::vector<const Feed*> given;
  std::erase_if(arrays, [&](const auto& named) { return std::ranges::find(options_.left_out, named.first) != options_.left_out.end() and find_feed(entry, named.first) == nullptr; });
  for (auto& [name, array] : arrays) {
    const Feed* feed = find_feed(entry, name);
    if (feed == nullptr) {
      std::string hint = did_you_mean(name, names);
      if (is_target_word(name) and not has_target) hint = "no target is needed here: leave it out";
      else if (name == "sample_weight") hint = fmt::format("{} takes no weights of samples: training and evaluation do where the plan was compiled with {}, and prediction never", printable(entry.name), options_.files ? "--set loss.sample_weights=true" : "loss.sample_weights = true");
      else if (name == "x") hint = "x stands for the only input, and the model has several";
      std::vector<std::string> notes = {"it takes " + printable(join(names, ", "), 500)};
      if (not hint.empty()) notes.insert(notes.begin(), hint);
      diags.error(Code::kDataName, fmt::format("{}: the model has no input {}", options_.flag, quoted(name)), {}, std::move(notes));
      continue;
    }
    if (std::find(given.begin(), given.end(), feed) != given.end()) {
      diags.error(Code::kDataName, fmt::format("{}: {} is given twice, once under another name", options_.flag, quoted(feed->name)), {},
                  {"name each input once"});
      continue;
    }
    given.push_back(feed);
    try {
      add_column(*feed, std::move(array));
    } catch (const Error& error) { diags.append(error); }
  }
  for (const Feed& feed : entry.feeds) {
    if (not is_data(feed) or may_be_left_out(entry, feed) or std::find(given.begin(), given.end(), &feed) != given.end()) continue;
    const bool target = feed.kind == Feed::Kind::kTarget;
    diags.error(Code::kDataName,
                fmt::format("{}: nothing feeds {} ({})", options_.flag, target ? "the target" : "the input " + quoted(feed.name), type_text(feed)), {},
                {fmt::format(fmt::runtime(options_.files ? "add {}=FILE" : "add a tensor called {}"), target ? "y" : printable(feed.name))});
  }
  diags.throw_if_errors();
}

/// Without weights of samples each counts 1.
void BoundArrays::count_all_the_same(const plan::Entry& entry) {
  for (const Feed& feed : entry.feeds) {
    if (not may_be_left_out(entry, feed) or std::ranges::any_of(columns_, [&](const Column& column) { return column.feed.name == feed.name; })) continue;
    std::vector<std::int64_t> shape = {length_};
    const auto slices = std::ranges::find_if(columns_, [](const Column& column) { return not column.row_shape.empty(); });
    if (options_.pre_batched and slices != columns_.end()) shape.push_back(slices->row_shape[0]);  // its samples
    add_column(feed, ones(feed.name, std::move(shape)));
  }
}

/// Floats where integers are wanted, or types that only weights have.
void BoundArrays::refuse_type(const Feed& feed, const Array& array) const {
  const std::string what = fmt::format("{} holds {}, and {} takes {}", printable(array.label()), to_string(array.dtype()), quoted(feed.name), to_string(feed.dtype));
  if (is_float(feed.dtype) or not is_float(array.dtype()))
    throw Error(Code::kDataType, what + "; elements of fewer than 8 bits, and floats of 8, are for weights alone", {}, {options_.files ? "save it as f32, or as an integer type of 8 bits or more" : "cast it to f32, or to an integer type of 8 bits or more"});
  const std::string way_out = not options_.files  ? "cast it to an integer type"
                              : is_of_csv(array) ? "write its numbers without a point, and none that is missing: with pandas, frame[\"y\"].astype(\"int64\")"
                                                 : "save it with an integer type: numpy.save(\"y.npy\", y.astype(\"int64\"))";
  throw Error(Code::kDataType, what + "; floats are never made integers", {}, {way_out});
}

/// Rows of a target are samples; where the model has these along another axis, only who made the batches knows which is which.
void BoundArrays::check_first_axis(const Feed& feed, const Array& array) const {
  const auto has_batch = [&](const Dim& extent) { return std::ranges::count(extent.symbols(), options_.batch_symbol) > 0; };
  if (options_.batch_symbol.empty() or std::ranges::none_of(feed.shape, has_batch)) return;
  throw Error(Code::kDataShape, fmt::format("{} is {}, and {} takes {}, whose first axis is not that of the samples, {}", printable(array.label()), type_text(array), quoted(feed.name), type_text(feed), options_.batch_symbol), {},
              {options_.files ? "give batches that are made already, each as the model has it: --pre-batched" : "give a data set of batches, each as the model has it",
               "or let the model put the samples first: without the Reshape or Transpose at its output"});
}

void BoundArrays::refuse_shape(const Feed& feed, const Array& array) const {
  std::vector<std::string> notes;
  if (const std::string label = lower_case(array.label()); options_.files and (label.ends_with(".csv") or label.ends_with(".tsv"))) notes.emplace_back("these are all columns; choose some by number or name: x=FILE.csv:0..5,y=FILE.csv:-1");
  else if (has_one_hot_shape(feed, array)) notes.emplace_back("are these one-hot vectors, or probabilities? This plan's loss takes the number of the class, numpy.argmax(y, axis=-1); compiled with --set loss.targets=probabilities it takes them as they are");
  if (options_.files and not options_.pre_batched and array.shape().size() == feed.shape.size() + 1 and fit(feed.shape, std::span(array.shape()).subspan(1)))
    notes.emplace_back("if the first axis is the number of the batch, say --pre-batched");
  if (notes.empty() and not options_.pre_batched) notes = shape_notes(feed, array, options_.files);
  if (notes.empty()) notes.emplace_back(options_.pre_batched ? "with --pre-batched the first axis is the number of the batch" : "the first axis is the sample");
  throw Error(Code::kDataShape,
              fmt::format("{} is {}, and {} takes {}{}", printable(array.label()), type_text(array), quoted(feed.name),
                          options_.pre_batched ? "batches of " : "", type_text(feed)),
              {}, std::move(notes));
}

void BoundArrays::add_column(const Feed& feed, Array array) {
  if (not can_convert(array.dtype(), feed.dtype) and has_one_hot_shape(feed, array) and not options_.pre_batched) refuse_shape(feed, array);
  if (not can_convert(array.dtype(), feed.dtype)) refuse_type(feed, array);
  const bool fixed_sizes = options_.batch_symbol.empty();
  const bool has_samples = not feed.shape.empty() and (fixed_sizes or feed.shape[0] == Dim::symbol(options_.batch_symbol));
  if (not has_samples and feed.kind == Feed::Kind::kTarget and not options_.pre_batched and not options_.one_batch) check_first_axis(feed, array);
  const bool by_sample = options_.pre_batched or has_samples;
  if (by_sample and array.shape().empty()) refuse_shape(feed, array);
  const std::span<const std::int64_t> extents(array.shape());
  const Shape wanted(feed.shape.begin() + (has_samples and not options_.pre_batched ? 1 : 0), feed.shape.end());
  const auto row_shape = fit(wanted, extents.subspan(by_sample ? 1 : 0));
  if (not row_shape) refuse_shape(feed, array);
  if (not std::equal(row_shape->begin(), row_shape->end(), extents.begin() + (by_sample ? 1 : 0), extents.end()))
    notes_.push_back(fmt::format("{} is {}; its rows are read as {}{} for {}", printable(array.label()), type_text(array), to_string(feed.dtype),
                                 shape_text(*row_shape), quoted(feed.name)));
  if (fixed_sizes and by_sample and not options_.pre_batched and not feed.shape[0].is_constant())
    throw Error(Code::kUsage, fmt::format("{}: {} takes any number of samples, {}, and it is not said that this is their axis", options_.flag, quoted(feed.name), feed.shape[0].text()), {},
                {"BindOptions::batch_symbol is the plan's batch_symbol"});
  if (fixed_sizes and by_sample and not options_.pre_batched) fixed_batch_ = feed.shape[0].value();
  const auto factor = scale_.find(feed.name);
  if (array.dtype() == DType::kU8 and is_float(feed.dtype) and feed.kind == Feed::Kind::kModelInput and factor == scale_.end())
    notes_.push_back(fmt::format("{} holds bytes, which {} gets as they are, 0 to 255; {}data.scale.{}=0.00392156862745098{} makes them 0 to 1 (and =1 says that they are meant so)", printable(array.label()),
                                 quoted(feed.name), options_.files ? "--set " : "", printable(feed.name), options_.files ? "" : " in the recipe"));
  if (options_.files and factor != scale_.end() and feed.kind == Feed::Kind::kModelInput) note_scaled_before(feed, array, factor->second);
  if (feed.kind == Feed::Kind::kTarget and factor == scale_.end()) note_odd_targets(feed, array);
  for (const std::string& note : array.notes())
    if (std::ranges::count(notes_, note) == 0) notes_.push_back(note);  // two arrays of one archive say the same
  Converter converter(array.dtype(), feed.dtype, factor == scale_.end() ? 1 : factor->second);
  const std::int64_t row_elements = checked_element_count(*row_shape);
  columns_.push_back({feed, std::move(array), std::move(converter), by_sample, *row_shape, row_elements});
}

/// Looks at the first rows alone: what is meant so may be far behind, and is the user's.
void BoundArrays::note_odd_targets(const Feed& feed, const Array& array) {
  struct Labels {
    std::string_view loss;
    double least, most;
    std::string_view way_out = "";  ///< of what is larger
  };
  constexpr std::string_view kNumbers = "; numbers of classes are for softmax_cross_entropy, and an output for each", kProbabilities = "; loss.targets = \"probabilities\" takes those of each class";
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr Labels kLabels[] = {{"bce", 0, 1, kNumbers}, {"bce_with_logits", 0, 1, kNumbers}, {"hinge", -1, 1, kNumbers}, {"squared_hinge", -1, 1, kNumbers},
                                {"softmax_cross_entropy", 0, 1, kProbabilities}, {"cross_entropy", 0, 1, kProbabilities}, {"nll", 0, 1, kProbabilities},
                                {"kl_divergence", 0, 1}, {"poisson", 0, kInfinity}, {"msle", 0, kInfinity}};
  constexpr std::int64_t kLookedAt = 1024, kMostElements = 1 << 20;
  const auto* const labels = std::ranges::find(kLabels, options_.loss, &Labels::loss);
  if (labels == std::end(kLabels) or array.shape().empty() or not is_float(feed.dtype)) return;
  std::vector<std::byte> scratch;
  const std::int64_t rows = std::min({array.row_count(), kLookedAt, std::max<std::int64_t>(1, kMostElements / std::max<std::int64_t>(1, array.row_elements()))});
  const auto count = static_cast<std::size_t>(rows) * array.row_bytes() / size_of(array.dtype());
  if (count == 0) return;
  std::vector<double> values(count);
  Converter(array.dtype(), DType::kF64, 1).convert(array.rows(0, rows, scratch), reinterpret_cast<std::byte*>(values.data()), count);
  const auto odd = std::ranges::find_if(values, [&](double value) { return value < labels->least or value > labels->most; });
  if (odd == values.end()) return;
  const std::string_view way_out = *odd > labels->most ? labels->way_out : *odd == -1 and labels->way_out == kNumbers ? "; (y + 1) / 2 makes -1 and 1 that" : "";
  const std::string range = std::isinf(labels->most) ? fmt::format("{:g} or more", labels->least) : fmt::format("{:g} to {:g}", labels->least, labels->most);
  notes_.push_back(fmt::format("{} holds {:.6g}, and the loss {} is made for targets of {}{}", printable(array.label()), *odd, labels->loss, range, way_out));
}

/// Pixels that were made 0 to 1 when they were saved are made next to nothing by a factor for bytes.
void BoundArrays::note_scaled_before(const Feed& feed, const Array& array, double factor) {
  constexpr std::int64_t kLookedAt = 64;
  constexpr double kForBytes = 1.0 / 64;
  if (array.dtype() != DType::kF32 or array.shape().empty() or std::fabs(factor) > kForBytes) return;
  std::vector<std::byte> scratch;
  const std::int64_t rows = std::min(array.row_count(), kLookedAt);
  if (rows == 0) return;
  const auto* const elements = reinterpret_cast<const float*>(array.rows(0, rows, scratch));
  float most = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows) * array.row_bytes() / sizeof(float); ++i) most = std::max(most, std::fabs(elements[i]));
  if (most > 0 and most <= 1)
    notes_.push_back(fmt::format("{} holds floats up to {:.3g}, which data.scale makes {:.3g} for {}: are they scaled already? --set data.scale.{}=1 leaves them as they are", printable(array.label()), most,
                                 static_cast<double>(most) * factor, quoted(feed.name), printable(feed.name)));
}

std::uint64_t BoundArrays::hash_of_columns() const {
  constexpr std::int64_t kRows = 16;
  std::uint64_t hash = 0;
  std::vector<std::byte> scratch;
  for (const Column& column : columns_) {
    const std::int64_t count = column.array.row_count();
    hash = hash_of(fmt::format("{} {} {} {}", column.feed.name, to_string(column.array.dtype()), count, shape_text(column.row_shape)), hash);
    for (std::int64_t i = 0; i < std::min(count, kRows); ++i) {
      const std::int64_t row = count <= kRows ? i : i + 1 == kRows ? count - 1 : count / kRows * i;
      hash = hash_of(std::span(column.array.rows(row, 1, scratch), column.array.row_bytes()), hash);
    }
  }
  return hash;
}

void BoundArrays::keep_as_bytes() {
  hash_ = hash();
  for (Column& column : columns_) {
    if (not column.by_sample or column.feed.dtype != DType::kF32 or not column.converter.only_copies() or column.array.is_streamed() or column.array.element_count() > static_cast<std::int64_t>(kMappedBytes)) continue;
    std::optional<BytesForFloats> kept = as_bytes(column.array);
    if (not kept) continue;
    column.converter = std::move(kept->converter);
    column.array = std::move(kept->bytes);
  }
}

void BoundArrays::check_lengths() {
  const Column* first = nullptr;
  for (const Column& column : columns_) {
    if (not column.by_sample) continue;
    const std::int64_t length = column.array.shape()[0];
    if (length == 0)
      throw Error(Code::kDataLength, fmt::format("{}: {} has no rows", options_.flag, printable(column.array.label())), {}, {"give at least one sample"});
    if (first == nullptr) {
      first = &column;
      length_ = length;
    } else if (length != length_) {
      std::vector<std::string> notes;
      for (const Column& each : columns_)
        if (each.by_sample) notes.push_back(fmt::format("{} has {} rows", printable(each.array.label()), each.array.shape()[0]));
      notes.emplace_back(options_.files ? "row i of each file belongs to sample i; a file can be cut as in FILE[0:8000]" : "row i of each tensor belongs to sample i");
      throw Error(Code::kDataLength, fmt::format("{}: the arrays differ in length", options_.flag), {}, std::move(notes));
    }
  }
  if (first == nullptr)
    throw Error(Code::kDataLength, fmt::format("{}: no input has a sample axis, so there is nothing to go through", options_.flag), {}, {options_.files ? "use hone-run call" : "run the entry on the session"});
  for (Column& column : columns_) {
    if (not is_by_sample_by_length(column)) {
      check_whole(column);
      continue;
    }
    column.by_sample = true;
    column.row_shape.erase(column.row_shape.begin());
    column.row_elements = checked_element_count(column.row_shape);
  }
  if (fixed_batch_ > length_)
    throw Error(Code::kDataLength, fmt::format("{}: {} samples, and the model takes exactly {} at a time", options_.flag, length_, fixed_batch_), {},
                {options_.files ? "export the model with a dynamic batch axis" : "batch(n, true) leaves out a smaller batch at the end; a model whose first axis is open, not fixed by `dims` or its file, takes any"});
}

/// Is the first axis of what it feeds a size that is not that of the samples?
bool BoundArrays::has_own_size(const Column& column) { return not column.by_sample and plan::is_data(column.feed) and not column.feed.shape.empty() and column.feed.shape[0].is_symbol(); }

/// Where it is computed how many samples an output has, a target that has a row for each belongs to them.
bool BoundArrays::is_by_sample_by_length(const Column& column) const { return has_own_size(column) and column.feed.kind != Feed::Kind::kModelInput and column.array.shape()[0] == length_; }

/// An input whose first axis has a size of its own is not cut into batches: an exporter that was not told better gives every input such a size.
void BoundArrays::check_whole(const Column& column) {
  if (not has_own_size(column) or options_.one_batch) return;
  const std::int64_t rows = column.array.shape()[0];
  const std::string axis = column.feed.shape[0].text();
  if (rows == length_ and rows > 1)
    throw Error(Code::kDataShape, fmt::format("{} has a row for each of the {} samples, and the model's first axis of {} is another one, {}, than that of its samples, {}: all rows would go to every batch",
                                              printable(column.array.label()), rows, quoted(column.feed.name), axis, options_.batch_symbol), {},
                {"export the model with one name for the samples of all inputs: dynamic_axes={..., 0: \"N\"}, or one torch.export.Dim in dynamic_shapes",
                 fmt::format("or say when compiling that they are one: {}", options_.files ? fmt::format("--dim {}={}", axis, options_.batch_symbol) : fmt::format(R"(.equal_dims = {{{{"{}", "{}"}}}})", axis, options_.batch_symbol)),
                 "or give batches that are made already: --pre-batched"});
  notes_.push_back(fmt::format("{} is {}, and goes to every batch as it is: its first axis, {}, is not that of the samples", printable(column.array.label()), type_text(column.array), axis));
}

/// A size that several inputs have must be the same in all of them.
void BoundArrays::check_sizes() const {
  struct Use {
    const Column* column;
    std::int64_t extent;
  };
  std::map<std::string, Use> uses;
  for (const Column& column : columns_) {
    const std::size_t first = column.feed.shape.size() - column.row_shape.size();
    for (std::size_t axis = 0; axis < column.row_shape.size(); ++axis) {
      const Dim& dim = column.feed.shape[first + axis];
      if (not dim.is_symbol()) continue;
      const auto [use, is_new] = uses.emplace(dim.text(), Use{&column, column.row_shape[axis]});
      if (use->second.extent == column.row_shape[axis]) continue;
      const auto told = [&](const Column& each, std::int64_t extent) { return fmt::format("{} is {}, where {} takes {}{}: {} = {}", printable(each.array.label()), type_text(each.array), quoted(each.feed.name), options_.pre_batched ? "batches of " : "", type_text(each.feed), dim.text(), extent); };
      throw Error(Code::kDataShape, fmt::format("{}: the arrays differ in the size {}, which the model has once", options_.flag, dim.text()), {},
                  {told(*use->second.column, use->second.extent), told(column, column.row_shape[axis])});
    }
  }
}

namespace {

/// What may be meant by numbers of classes of which some are none of the model's `classes`.
std::string class_note(const Array& array, std::int64_t classes) {
  const auto has_outside = [&](std::int64_t least, std::int64_t most) {
    return array.find([&](const std::byte* elements, std::size_t count) { return find_outside(array.dtype(), elements, count, least, most, std::nullopt); }).has_value();
  };
  const bool has_more = has_outside(std::numeric_limits<std::int64_t>::min(), classes - 1);
  if (not has_outside(1, classes)) return "classes count from 0, and these count from 1: numpy.save(\"y.npy\", y - 1)";
  return has_more ? fmt::format("classes count from 0, and the model has {}: hone-compile --new-head classes=N replaces its last layer by one for N", classes) : "classes count from 0";
}

}  // namespace

void check_values(const Feed& feed, const Array& array, std::string_view row_word) {
  if (is_float(feed.dtype) or is_float(array.dtype())) return;
  const auto held = range_of(array.dtype()), taken = feed.bounds ? std::pair(feed.bounds->first, feed.bounds->second - 1) : range_of(feed.dtype);
  const std::int64_t least = taken.first, most = taken.second;  // a lambda takes no binding
  const bool reaches_beyond = array.dtype() == DType::kU64 and feed.dtype != DType::kU64;
  const bool always_fits = held.first >= least and held.second <= most and not reaches_beyond;
  if (always_fits) return;
  const auto bad =
      array.find([&](const std::byte* elements, std::size_t count) { return find_outside(array.dtype(), elements, count, least, most, feed.ignored); });
  if (not bad) return;
  std::vector<std::string> notes = {feed.kind != Feed::Kind::kTarget ? "ids count from 0" : feed.bounds ? class_note(array, feed.bounds->second) : ""};
  if (not feed.bounds) notes = {"save it with values that fit"};
  else if (feed.ignored) notes.push_back(fmt::format("{} marks what does not count", *feed.ignored));
  std::vector<std::byte> scratch;
  const std::byte* row = array.rows(bad->row, 1, scratch);
  throw Error(Code::kDataRange,
              fmt::format("{}: {} holds {}, and {} takes {} to {}", printable(array.label()), place_text(array, *bad, row_word),
                          integer_text(array.dtype(), row, static_cast<std::size_t>(bad->element)), quoted(feed.name), least, most),
              {}, std::move(notes));
}

}  // namespace hone
