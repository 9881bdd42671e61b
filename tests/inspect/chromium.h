// A headless Chromium that opens a page, is clicked at, and says what it shows: DevTools' protocol over a pipe.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace hone::test {

class Chromium {
 public:
  /// Where it is installed; nothing: it is not.
  static std::optional<std::string> find();

  /// Starts `program` with a profile in `folder`. Throws std::runtime_error if it does not answer.
  Chromium(const std::string& program, const std::string& folder, int width, int height);
  ~Chromium();
  Chromium(const Chromium&) = delete;
  Chromium& operator=(const Chromium&) = delete;

  void open(const std::string& path);
  /// The value of a JavaScript expression, awaited; throws std::runtime_error with what it throws.
  nlohmann::json evaluate(const std::string& expression);
  /// Text that is seen in the element.
  std::string text_of(const std::string& selector);
  /// Clicks with the mouse in the middle of an element, or at a place of the page.
  void click(const std::string& selector);
  void click_at(double x, double y);
  void type(const std::string& text);
  void press_enter();
  void wheel(double x, double y, double delta);
  /// A PNG picture, in base64.
  std::string screenshot();
  /// Errors of scripts, of the console and of the content security policy so far.
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  nlohmann::json call(const std::string& method, nlohmann::json parameters = nlohmann::json::object());
  nlohmann::json receive();
  void note(const nlohmann::json& event);

  pid_t process_ = -1;
  int to_ = -1, from_ = -1;
  std::string received_, session_;
  int calls_ = 0;
  bool loaded_ = false;
  std::vector<std::string> errors_;
};

}  // namespace hone::test
