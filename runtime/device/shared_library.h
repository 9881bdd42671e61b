// Libraries that are loaded when they are used, so that one binary runs with and without them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace hone {

/// The first of the files that can be opened, which is never closed again; null, and in *why what the loader says of the last.
void* open_shared_library(std::span<const char* const> files, std::string* why);

/// Null, and *why, if the library, which messages call `file`, has no function of that name.
void* find_function(void* library, const std::string& file, const char* name, std::string* why);

/// "13.1.0" of 130100, as NVIDIA's libraries count.
std::string version_text(std::size_t number);
/// Why a version will not do.
std::string too_old_text(std::size_t number, std::size_t oldest);

/// The first of the files that can be opened, as a struct of its functions; null, and *why, if there is none, or it lacks a function, or is too old. `Library` has find_functions(library, why), which
/// says whether all are there, number(), its version, and kOldest, the first that will do.
template <typename Library>
std::unique_ptr<Library> open_library(std::span<const char* const> files, std::string* why) {
  void* const handle = open_shared_library(files, why);
  if (handle == nullptr) return nullptr;
  auto library = std::make_unique<Library>();
  if (not library->find_functions(handle, why)) return nullptr;
  if (library->number() < Library::kOldest) return *why = too_old_text(library->number(), Library::kOldest), nullptr;
  return library;
}

/// The machine's, of one of Library::kFiles, opened once. Null, and *why (which may be null).
template <typename Library>
const Library* library_of_machine(std::string* why) {
  static std::string why_none;
  static const std::unique_ptr<Library> loaded = open_library<Library>(Library::kFiles, &why_none);
  if (loaded == nullptr and why != nullptr) *why = why_none;
  return loaded.get();
}

}  // namespace hone
