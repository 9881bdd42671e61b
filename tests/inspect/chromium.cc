#include "tests/inspect/chromium.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

namespace hone::test {

using nlohmann::json;

namespace {

constexpr int kCommands = 3, kAnswers = 4;  // where Chromium reads and writes with --remote-debugging-pipe
constexpr int kPatience = 60'000;           // milliseconds

/// In the child: both ends to where they are expected, whatever numbers they have now.
void take_places(int commands, int answers) {
  const int a = ::fcntl(commands, F_DUPFD, 10), b = ::fcntl(answers, F_DUPFD, 10);
  ::dup2(a, kCommands), ::dup2(b, kAnswers);
}

}  // namespace

std::optional<std::string> Chromium::find() {
  for (const char* path : {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"})
    if (std::filesystem::exists(path)) return path;
  return std::nullopt;
}

Chromium::Chromium(const std::string& program, const std::string& folder, int width, int height) {
  std::array<int, 2> commands, answers;
  if (::pipe2(commands.data(), O_CLOEXEC) != 0 or ::pipe2(answers.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipes");
  const std::string profile = "--user-data-dir=" + folder, size = "--window-size=" + std::to_string(width) + "," + std::to_string(height);
  process_ = ::fork();
  if (process_ == 0) {
    take_places(commands[0], answers[1]);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(126);
    ::execl(program.c_str(), program.c_str(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage", "--remote-debugging-pipe", profile.c_str(), size.c_str(), "about:blank",
            nullptr);
    ::_exit(127);
  }
  ::close(commands[0]), ::close(answers[1]);
  to_ = commands[1], from_ = answers[0];
  const std::string target = call("Target.createTarget", {{"url", "about:blank"}})["targetId"];
  session_ = call("Target.attachToTarget", {{"targetId", target}, {"flatten", true}})["sessionId"];
  for (const char* domain : {"Runtime.enable", "Log.enable", "Page.enable"}) call(domain);
  call("Emulation.setDeviceMetricsOverride", {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", false}});
}

Chromium::~Chromium() {
  ::close(to_), ::close(from_);
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

json Chromium::receive() {
  for (;;) {
    if (const std::size_t end = received_.find('\0'); end != std::string::npos) {
      const json message = json::parse(received_.substr(0, end));
      received_.erase(0, end + 1);
      return message;
    }
    pollfd waiting{.fd = from_, .events = POLLIN, .revents = 0};
    std::array<char, 65536> buffer;
    const ssize_t count = ::poll(&waiting, 1, kPatience) == 1 ? ::read(from_, buffer.data(), buffer.size()) : -1;
    if (count <= 0) throw std::runtime_error("Chromium does not answer");
    received_.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

void Chromium::note(const json& event) {
  const std::string method = event.value("method", "");
  if (method == "Page.loadEventFired") loaded_ = true;
  const bool is_error = method == "Runtime.exceptionThrown" or (method == "Log.entryAdded" and event["params"]["entry"]["level"] == "error") or
                        (method == "Runtime.consoleAPICalled" and event["params"]["type"] == "error");
  if (is_error) errors_.push_back(event["params"].dump());
}

json Chromium::call(const std::string& method, json parameters) {
  json message = {{"id", ++calls_}, {"method", method}, {"params", std::move(parameters)}};
  if (not session_.empty()) message["sessionId"] = session_;
  const std::string text = message.dump() + '\0';
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::write(to_, text.data() + sent, text.size() - sent);
    if (count <= 0) throw std::runtime_error("Chromium has ended");
    sent += static_cast<std::size_t>(count);
  }
  for (;;) {
    json answer = receive();
    if (answer.value("id", 0) != calls_) note(answer);
    else if (answer.contains("error")) throw std::runtime_error(method + ": " + answer["error"].dump());
    else return answer["result"];
  }
}

void Chromium::open(const std::string& path) {
  loaded_ = false;
  call("Page.navigate", {{"url", "file://" + path}});
  while (not loaded_) note(receive());
}

json Chromium::evaluate(const std::string& expression) {
  const json answer = call("Runtime.evaluate", {{"expression", expression}, {"awaitPromise", true}, {"returnByValue", true}});
  if (answer.contains("exceptionDetails")) throw std::runtime_error(expression + ": " + answer["exceptionDetails"].dump());
  return answer["result"].value("value", json());
}

std::string Chromium::text_of(const std::string& selector) {
  const json text = evaluate("(e => e ? e.innerText : null)(document.querySelector(" + json(selector).dump() + "))");
  return text.is_string() ? text.get<std::string>() : "";
}

void Chromium::click(const std::string& selector) {
  const json box = evaluate("(e => { e.scrollIntoView({ block: 'center' }); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })(document.querySelector(" + json(selector).dump() + "))");
  click_at(box[0], box[1]);
}

void Chromium::click_at(double x, double y) {
  for (const char* type : {"mouseMoved", "mousePressed", "mouseReleased"})
    call("Input.dispatchMouseEvent", {{"type", type}, {"x", x}, {"y", y}, {"button", "left"}, {"buttons", type == std::string("mousePressed") ? 1 : 0}, {"clickCount", 1}});
}

void Chromium::type(const std::string& text) { call("Input.insertText", {{"text", text}}); }

void Chromium::press_enter() {
  for (const char* type : {"keyDown", "keyUp"}) call("Input.dispatchKeyEvent", {{"type", type}, {"key", "Enter"}, {"code", "Enter"}, {"windowsVirtualKeyCode", 13}});
}

void Chromium::wheel(double x, double y, double delta) { call("Input.dispatchMouseEvent", {{"type", "mouseWheel"}, {"x", x}, {"y", y}, {"deltaX", 0}, {"deltaY", delta}}); }

std::string Chromium::screenshot() { return call("Page.captureScreenshot", {{"format", "png"}})["data"]; }

}  // namespace hone::test
