#include "runtime/train/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/diag.h"
#include "base/text.h"
#include "runtime/feeds.h"

namespace hone {

namespace {

/// One output's rows, as they come.
struct Collected {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> row_shape;
  std::int64_t rows = 0;
  std::vector<std::byte> bytes;
};

std::size_t byte_count(const TensorView& view) { return static_cast<std::size_t>(checked_element_count(view.shape)) * size_of(view.dtype); }

void collect(const TensorView& view, std::int64_t rows, bool slices, const std::string& name, Collected* output) {
  const std::vector<std::int64_t> row_shape(view.shape.begin() + (slices ? 0 : 1), view.shape.end());
  if (output->rows > 0 and row_shape != output->row_shape)
    throw Error(Code::kPlanMismatch, fmt::format("a sample's part of the output {} is {} for one batch and {} for another: it depends on the other samples of a batch", quoted(name), shape_text(output->row_shape), shape_text(row_shape)), {},
                {"take batches of one size (--batch with a divisor of the number of rows, or all of them), or hone-run call, which takes and gives tensors as they are"});
  output->dtype = view.dtype;
  output->row_shape = row_shape;
  output->rows += slices ? 1 : rows;
  const auto* data = static_cast<const std::byte*>(view.data);
  output->bytes.insert(output->bytes.end(), data, data + byte_count(view));
}

/// Type and values of a tensor that is fed as it is.
void check_input(const plan::Feed& feed, const Array& array) {
  if (array.dtype() != feed.dtype)
    throw Error(Code::kDataType,
                fmt::format("{} is {}{}, and {} takes {}[{}]", printable(array.label()), to_string(array.dtype()), shape_text(array.shape()), quoted(feed.name),
                            to_string(feed.dtype), printable(to_string(feed.shape))),
                {}, {"hone-run call takes tensors as they are: save it with that type, or use hone-run predict, which makes floats of integers"});
  check_values(feed, array, "row");
}

}  // namespace

void require_sample_axis(const plan::Entry& entry, std::string_view output, std::span<const std::int64_t> shape, std::int64_t samples, bool is_fixed, const char* way_out) {
  const auto result = std::ranges::find(entry.results, output, &plan::Result::name);
  HONE_CHECK(result != entry.results.end(), "there is no such output");
  const Shape& declared = entry.buffers[result->buffer].shape;
  const bool is_first = not declared.empty() and (is_fixed or not declared[0].is_constant());  // a size that no batch changes is as many as there are samples by chance
  if (is_first and shape[0] == samples) return;
  throw Error(Code::kPlanMismatch, fmt::format("the output {}, [{}], is {} for {} samples: its first axis is not theirs", quoted(output), to_string(declared), shape_text(shape), samples), {}, {way_out});
}

NamedTensors predict(StepRunner& runner, const plan::Entry& entry, const BoundArrays& data, std::int64_t batch_size) {
  BatchReader batches(data, batch_size, {.shuffle = false});
  if (batches.sample_count() != data.length())
    throw Error(
        Code::kDataLength, fmt::format("{} samples are no multiple of {}, the batch size that the model has fixed", data.length(), data.fixed_batch()), {},
        {fmt::format("give rows up to {} with FILE[0:{}], or export the model with a dynamic batch axis", batches.sample_count(), batches.sample_count())});
  std::vector<std::pair<std::string, Collected>> outputs;
  for (const plan::Result& result : entry.results) outputs.emplace_back(result.name, Collected{});
  batches.start_epoch(0);
  while (batches.next()) {
    runner.run(entry.name, batches.feeds());
    for (auto& [name, output] : outputs) {
      const TensorView view = runner.result(name);
      if (not data.pre_batched()) require_sample_axis(entry, name, view.shape, batches.size(), data.fixed_batch() > 0, "use hone-run call, which takes and gives tensors as they are");
      collect(view, batches.size(), data.pre_batched(), name, &output);
    }
  }
  NamedTensors tensors;
  for (auto& [name, output] : outputs) {
    output.row_shape.insert(output.row_shape.begin(), output.rows);
    tensors.emplace_back(name, Tensor::copy(output.dtype, output.row_shape, output.bytes));
    output.bytes = {};
  }
  return tensors;
}

NamedTensors call(StepRunner& runner, const plan::Entry& entry, const NamedArrays& inputs) {
  Diags diags;
  NamedViews feeds;
  std::vector<std::string> names;
  std::vector<std::vector<std::byte>> read(inputs.size());  // what does not lie in memory as it is fed
  for (const plan::Feed& feed : entry.feeds) names.push_back(feed.name);
  for (const auto& [name, array] : inputs) {
    const plan::Feed* feed = find_feed(entry, name);
    if (feed == nullptr) {
      diags.error(Code::kDataName, fmt::format("--in: the model has no input {}", quoted(name)), {}, {"it takes " + printable(join(names, ", "), 500)});
      continue;
    }
    const bool twice = std::any_of(feeds.begin(), feeds.end(), [&](const auto& other) { return other.first == feed->name; });
    if (twice) diags.error(Code::kDataName, fmt::format("--in: {} is given twice", quoted(feed->name)), {}, {"name each input once"});
    feeds.emplace_back(feed->name, TensorView(array.dtype(), array.shape(), array.rows(0, array.row_count(), read[feeds.size()])));
  }
  for (const std::string& name : names)
    if (std::none_of(feeds.begin(), feeds.end(), [&](const auto& feed) { return feed.first == name; }))
      diags.error(Code::kDataName, fmt::format("--in: nothing feeds the input {}", quoted(name)), {}, {fmt::format("add {}=FILE.npy", printable(name))});
  for (const auto& [name, array] : inputs) {
    const plan::Feed* feed = find_feed(entry, name);
    try {
      if (feed != nullptr) check_input(*feed, array);
    } catch (const Error& error) { diags.append(error); }
  }
  diags.throw_if_errors();
  runner.run(entry.name, feeds);
  NamedTensors tensors;
  for (const plan::Result& result : entry.results) tensors.emplace_back(result.name, copy_of(runner.result(result.name)));
  return tensors;
}

}  // namespace hone
