#include "base/diag.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"

namespace hone {

std::string to_string(Code code) { return fmt::format("HN-{:04}", static_cast<int>(code)); }

int exit_code(Code code) {
  constexpr int kExitCodeOfHundred[] = {2, 3, 5, 4, 7, 10, 8, 6, 9, 11};
  const auto hundred = static_cast<std::size_t>(code) / 100;
  HONE_CHECK(hundred < std::size(kExitCodeOfHundred), "error code without an exit code: " + to_string(code));
  return kExitCodeOfHundred[hundred];
}

Loc derived_from(const Loc& origin, std::string_view how) {
  Loc loc = origin;
  loc.derived = origin.derived.empty() ? std::string(how) : fmt::format("{}, {}", how, origin.derived);
  return loc;
}

std::string to_string(const Loc& loc) {
  std::string text;
  const auto join = [&text](const std::string& part) { text += (text.empty() ? "" : " ") + part; };
  if (not loc.derived.empty()) join(loc.derived);
  if (not loc.node.empty()) join("at node " + quoted(loc.node));
  if (not loc.layer.empty()) join("of layer " + quoted(loc.layer));
  if (not loc.file.empty()) join((text.empty() ? "in " : "in ") + loc.file + (loc.line > 0 ? fmt::format(":{}", loc.line) : ""));
  if (loc.file.empty() and loc.line > 0) join(fmt::format("at line {}", loc.line));
  return text;
}

std::string to_string(const Diag& diag) {
  constexpr std::string_view kSeverity[] = {"error", "warning", "note"};
  std::string text = fmt::format("{}[{}]: {}", kSeverity[static_cast<int>(diag.severity)], to_string(diag.code), diag.message);
  if (const std::string where = to_string(diag.loc); not where.empty()) text += "\n  " + where;
  for (const std::string& note : diag.notes)
    if (not note.empty()) text += "\n  note: " + note;  // a hint that was not found leaves its place empty
  return text;
}

Error::Error(std::vector<Diag> diags) : diags_(std::move(diags)) {
  HONE_CHECK(not diags_.empty(), "an Error without a Diag");
  for (const Diag& diag : diags_) text_ += (text_.empty() ? "" : "\n") + to_string(diag);
}

Error::Error(Code code, std::string message, Loc loc, std::vector<std::string> notes)
    : Error(std::vector<Diag>{Diag{code, std::move(message), std::move(loc), std::move(notes)}}) {}

Error with_note(const Error& error, std::string note) {
  std::vector<Diag> diags = error.diags();
  diags.front().notes.push_back(std::move(note));
  return Error(std::move(diags));
}

int Error::exit_code() const { return hone::exit_code(diags_.front().code); }

void Diags::error(Code code, std::string message, Loc loc, std::vector<std::string> notes) {
  add({code, std::move(message), std::move(loc), std::move(notes), Severity::kError});
}

void Diags::warn(Code code, std::string message, Loc loc, std::vector<std::string> notes) {
  add({code, std::move(message), std::move(loc), std::move(notes), Severity::kWarning});
}

void Diags::append(const Error& error) { diags_.insert(diags_.end(), error.diags().begin(), error.diags().end()); }

bool Diags::has_errors() const {
  for (const Diag& diag : diags_)
    if (diag.severity == Severity::kError) return true;
  return false;
}

void Diags::throw_if_errors() const {
  std::vector<Diag> errors;
  for (const Diag& diag : diags_)
    if (diag.severity == Severity::kError) errors.push_back(diag);
  if (not errors.empty()) throw Error(std::move(errors));
}

void internal_error(const char* file, int line, const std::string& message) {
  throw InternalError(fmt::format("internal error: {} ({}:{})\n  note: this is a mistake in Hone; please report it with the command that led here", message, file, line));
}

}  // namespace hone
