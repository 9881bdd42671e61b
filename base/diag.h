// Diagnostics: what the user did wrong, said so that they can mend it. Wrong Hone is HONE_CHECK (base/check.h).
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/codes.h"

namespace hone {

/// Where something came from, in the user's own terms. Every field may be empty.
struct Loc {
  std::string file = {};     ///< "mnist.onnx", "train.toml", "model.hir", "labels.npy", or a C++ source file
  std::string node = {};     ///< the node as the user knows it: "fc1/MatMul"
  std::string layer = {};    ///< the module path that the exporter left: "encoder/layer.0/attention"
  std::string derived = {};  ///< what made it, if a pass did: "gradient of", "lowered from softmax", "update of fc1.weight"
  int line = 0;         ///< 1-based line in `file`, 0 if there is none

  bool empty() const { return file.empty() and node.empty() and layer.empty() and derived.empty() and line == 0; }
};

/// The `Loc` of something a pass derived from `origin`: same node and layer, with `how` in front of what derived it before.
Loc derived_from(const Loc& origin, std::string_view how);

/// " at node "fc1/MatMul" in mnist.onnx" without the leading blank; empty for an empty loc.
std::string to_string(const Loc& loc);

enum class Severity { kError, kWarning, kNote };

/// One problem: what was found, what was expected (message), where (loc), and the way out (notes).
struct Diag {
  Code code;
  std::string message;
  Loc loc;
  std::vector<std::string> notes;
  Severity severity = Severity::kError;
};

/// error[HN-0107]: message
///   at node "fc1/MatMul" in mnist.onnx
///   note: ...
std::string to_string(const Diag& diag);

/// Thrown for a wrong model, recipe, data set, file or command. Carries at least one Diag.
class Error : public std::exception {
 public:
  explicit Error(std::vector<Diag> diags);
  Error(Code code, std::string message, Loc loc = {}, std::vector<std::string> notes = {});

  const std::vector<Diag>& diags() const { return diags_; }
  int exit_code() const;
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::vector<Diag> diags_;
  std::string text_;
};

/// The same error with one more note at its first problem.
Error with_note(const Error& error, std::string note);

/// Collects all problems of an importer or checker before it throws.
class Diags {
 public:
  void add(Diag diag) { diags_.push_back(std::move(diag)); }
  void error(Code code, std::string message, Loc loc = {}, std::vector<std::string> notes = {});
  void warn(Code code, std::string message, Loc loc = {}, std::vector<std::string> notes = {});
  void append(const Error& error);

  bool has_errors() const;
  const std::vector<Diag>& all() const { return diags_; }
  /// Throws one Error with all errors, if there is any; warnings stay here.
  void throw_if_errors() const;

 private:
  std::vector<Diag> diags_;
};

}  // namespace hone
