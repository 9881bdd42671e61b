// TensorBoard's event files: scalars and histograms by tag and step. A file is a row of TFRecords (length, its masked CRC32C, an Event, its masked CRC32C).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/tensor.h"

namespace hone {

/// A file in a folder that TensorBoard shows as one run. Each record is whole in the file when its call returns, so a run that is killed leaves files that
/// can be read. All calls throw kFileWrite.
class TensorboardEvents {
 public:
  /// A new file in `folder`, which is made if it is missing; its name sorts behind those that are there. Throws kFileOpen, kFileWrite.
  explicit TensorboardEvents(const std::string& folder);

  /// One record with all of `values`; they are kept as f32, also what is not finite. Nothing for no values.
  void scalars(std::int64_t step, std::span<const std::pair<std::string, double>> values);
  /// How the finite elements of `values` are spread: 30 buckets of one width between the smallest and the largest. Nothing if there are none.
  void histogram(std::int64_t step, std::string_view tag, const Tensor& values);
  /// Tells readers that the run goes on at `step`: what older files hold of this step and later ones no longer counts.
  void restart_at(std::int64_t step);

  const std::string& path() const { return file_.path(); }

 private:
  LogFile file_;
};

/// Takes the values for which `is_dropped` says true out of the event files in `folder`, and what is no whole record at the end of a file. Another folder, or none, is fine. Throws kFileOpen, kFileRead, kFileWrite.
void drop_tensorboard_events(const std::string& folder, const std::function<bool(std::int64_t step, std::string_view tag)>& is_dropped);

/// Removes the event files in `folder`, and nothing else; a folder that is missing is fine. Throws kFileWrite.
void remove_tensorboard_events(const std::string& folder);

}  // namespace hone
