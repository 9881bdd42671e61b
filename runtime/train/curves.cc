#include "runtime/train/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/objectives.h"
#include "base/text.h"
#include "runtime/train/axis.h"

namespace hone {

namespace {

constexpr int kPanelWidth = 480, kPanelHeight = 270;
constexpr int kLeft = 62, kRight = 14, kTop = 46, kBottom = 42;  // around the plot of a panel
constexpr int kPlotWidth = kPanelWidth - kLeft - kRight, kPlotHeight = kPanelHeight - kTop - kBottom;
constexpr int kTitleHeight = 40, kPanelsInRow = 2;
constexpr std::size_t kSlices = kPlotWidth;  // a line is not drawn finer than this
constexpr std::size_t kLongestLegend = 40;

constexpr std::string_view kStyle =
    "text{font-family:sans-serif;font-size:11px;fill:#444}.title{font-size:13px;font-weight:bold;fill:#222}.grid{stroke:#e4e4e4}.frame{fill:none;stroke:#999}"
    ".line{fill:none;stroke-width:1.6;stroke-linejoin:round}.c0{stroke:#1f6fb4}.c1{stroke:#e8710a}.d0{fill:#1f6fb4}.d1{fill:#e8710a}";

struct Point {
  double x = 0, y = 0;
};

struct Line {
  std::string name;
  std::vector<Point> points;  // x ascending
};

struct Panel {
  std::string title, x_label;
  std::vector<Line> lines;  // one or two
};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text, kLongestLegend)) {
    if (c == '&') result += "&amp;";
    else if (c == '<') result += "&lt;";
    else if (c == '>') result += "&gt;";
    else result += c;
  }
  return result;
}

// ---- what is drawn

template <typename Value>
Line line_by_epoch(const RunHistory& history, std::string name, Value value) {
  Line line = {std::move(name), {}};
  for (const EpochPoint& epoch : history.epochs()) line.points.push_back({static_cast<double>(epoch.epoch), value(epoch)});
  return line;
}

template <typename Value>
Line line_by_step(const RunHistory& history, std::string name, Value value) {
  Line line = {std::move(name), {}};
  for (const StepPoint& step : history.steps()) line.points.push_back({static_cast<double>(step.step), value(step)});
  return line;
}

std::vector<Panel> panels_of(const RunHistory& history) {
  std::vector<Panel> panels;
  const auto has = [&](const std::string& name) { return std::find(history.names().begin(), history.names().end(), name) != history.names().end(); };
  for (const std::string& name : history.names()) {
    const std::string validation = std::string(kOfValidation) + name;
    if (name.starts_with(kOfValidation) and has(name.substr(kOfValidation.size()))) continue;  // drawn with the other
    Panel& panel = panels.emplace_back(Panel{name, "epoch", {}});
    for (const std::string& each : {name, validation})
      if (has(each)) panel.lines.push_back(line_by_epoch(history, each, [&](const EpochPoint& epoch) { return value_of(epoch, each); }));
  }
  if (history.steps().size() < 2) {
    panels.push_back({"learning rate", "epoch", {line_by_epoch(history, "learning_rate", [](const EpochPoint& epoch) { return epoch.learning_rate; })}});
    return panels;
  }
  panels.push_back({"loss of single steps", "step", {line_by_step(history, "loss", [](const StepPoint& step) { return step.loss; })}});
  panels.push_back({"learning rate", "step", {line_by_step(history, "learning_rate", [](const StepPoint& step) { return step.learning_rate; })}});
  return panels;
}

/// Of each slice of the axis its least and its largest value, in their order: what stands out stays. A slice without a finite value stays a gap.
std::vector<Point> thinned(const std::vector<Point>& points) {
  if (points.size() <= 2 * kSlices) return points;
  std::vector<Point> result;
  for (std::size_t slice = 0; slice < kSlices; ++slice) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(slice * points.size() / kSlices);
    const auto end = points.begin() + static_cast<std::ptrdiff_t>((slice + 1) * points.size() / kSlices);
    std::vector<Point> finite;
    std::copy_if(begin, end, std::back_inserter(finite), [](Point point) { return std::isfinite(point.y); });
    if (finite.empty()) finite.push_back(*begin);
    const auto [low, high] = std::minmax_element(finite.begin(), finite.end(), [](Point a, Point b) { return a.y < b.y; });
    result.push_back(std::min(low, high)[0]);
    if (low != high) result.push_back(std::max(low, high)[0]);
  }
  return result;
}

// ---- how

struct Axes {
  Axis x, y;
  double left(double value) const { return kLeft + kPlotWidth * x.place(value); }
  double top(double value) const { return kTop + kPlotHeight * (1 - y.place(value)); }
};

Axes axes_of(const Panel& panel) {
  std::vector<double> values;
  double first = panel.lines[0].points.front().x, last = first;
  for (const Line& line : panel.lines) {
    for (const Point point : line.points) values.push_back(point.y);
    first = std::min(first, line.points.front().x);
    last = std::max(last, line.points.back().x);
  }
  return {Axis::of_counts(first, last), Axis::of_values(values)};
}

/// Ticks, grid and frame.
std::string frame_svg(const Panel& panel, const Axes& axes) {
  std::string text = fmt::format("<text class=\"title\" x=\"{}\" y=\"18\">{}{}</text>\n", kLeft, escaped(panel.title),
                                 axes.y.is_logarithmic() ? ", logarithmic" : "");
  for (const Tick& tick : axes.y.ticks()) {
    const double y = kTop + kPlotHeight * (1 - tick.place);
    text += fmt::format("<path class=\"grid\" d=\"M{} {:.1f}h{}\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft, y, kPlotWidth, kLeft - 6,
                        y + 4, tick.label);
  }
  for (const Tick& tick : axes.x.ticks()) {
    const double x = kLeft + kPlotWidth * tick.place;
    text += fmt::format("<path class=\"grid\" d=\"M{:.1f} {}v{}\"/><text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x, kTop, kPlotHeight, x,
                        kTop + kPlotHeight + 16, tick.label);
  }
  return text + fmt::format("<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/><text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                            kLeft, kTop, kPlotWidth, kPlotHeight, kLeft + kPlotWidth / 2, kPanelHeight - 8, panel.x_label);
}

/// Runs of finite values as polylines, and dots where such a run is a single value.
std::string line_svg(const Line& line, const Axes& axes, std::size_t colour) {
  std::string path, dots;
  const std::vector<Point> points = thinned(line.points);
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin;
    while (end < points.size() and std::isfinite(points[end].y)) ++end;
    if (end == begin + 1)
      dots += fmt::format("<circle class=\"d{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>", colour, axes.left(points[begin].x), axes.top(points[begin].y));
    for (std::size_t i = begin; i < end and end > begin + 1; ++i)
      path += fmt::format("{}{:.1f} {:.1f}", i == begin ? "M" : "L", axes.left(points[i].x), axes.top(points[i].y));
    begin = end + 1;
  }
  if (not path.empty()) path = fmt::format("<path class=\"line c{}\" d=\"{}\"/>", colour, path);
  return path + dots + "\n";
}

/// The names with their last values, above the plot.
std::string legend_svg(const Panel& panel) {
  std::string text;
  for (std::size_t i = 0; i < panel.lines.size(); ++i) {
    const int x = kLeft + static_cast<int>(i) * kPlotWidth / 2;
    text += fmt::format("<path class=\"line c{}\" d=\"M{} 34h16\"/><text x=\"{}\" y=\"38\">{} {:.4g}</text>\n", i, x, x + 22, escaped(panel.lines[i].name),
                        without_nan_sign(panel.lines[i].points.back().y));
  }
  return text;
}

std::string panel_svg(const Panel& panel) {
  const Axes axes = axes_of(panel);
  std::string text = frame_svg(panel, axes) + legend_svg(panel);
  for (std::size_t i = 0; i < panel.lines.size(); ++i) text += line_svg(panel.lines[i], axes, i);
  return text;
}

}  // namespace

std::string curves_svg(const RunHistory& history) {
  const std::vector<Panel> panels = history.epochs().empty() ? std::vector<Panel>() : panels_of(history);
  const int rows = (static_cast<int>(panels.size()) + kPanelsInRow - 1) / kPanelsInRow;
  const int width = kPanelsInRow * kPanelWidth, height = kTitleHeight + rows * kPanelHeight;
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">\n<style>{2}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text class=\"title\" x=\"{3}\" y=\"24\">Training, {4} epoch{5}</text>\n",
      width, height, kStyle, kLeft, history.epochs().size(), history.epochs().size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const int column = static_cast<int>(i) % kPanelsInRow, row = static_cast<int>(i) / kPanelsInRow;
    text += fmt::format("<g transform=\"translate({},{})\">\n{}</g>\n", column * kPanelWidth, kTitleHeight + row * kPanelHeight, panel_svg(panels[i]));
  }
  return text + "</svg>\n";
}

}  // namespace hone
