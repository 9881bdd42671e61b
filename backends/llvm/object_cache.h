// Machine code that was made before, kept in a folder: compiling the same kernels again takes what reading it takes.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hone {

inline constexpr const char* kKernelCacheVariable = "HONE_KERNEL_CACHE";

/// A folder of files, each named by the hash of all that its code was made of. Any number of threads and processes may use it at the same time. What is damaged counts as missing, and what cannot
/// be written is left out: nothing depends on the folder, which may be deleted at any time. Beyond 1 GiB, and after a month, what was not read for the longest goes.
class ObjectCache {
 public:
  /// In the folder that the environment names in kKernelCacheVariable, which is made if it is not there; without that nothing is kept. Throws kFileWrite where there can be no such folder.
  ObjectCache();
  /// "": nothing is kept.
  explicit ObjectCache(std::string folder) : folder_(std::move(folder)) {}

  bool is_open() const { return not folder_.empty(); }
  /// The code that was kept for `source`, everything that decides what `make` gives; or what `make` gives, kept from now on.
  std::string find_or_make(std::string_view source, const std::function<std::string()>& make) const;
  /// Removes what is too much or too old, if that was not looked at for a while.
  void prune() const;

 private:
  std::string folder_;
};

}  // namespace hone
