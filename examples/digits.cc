// What the demo needs and a user would write: a small convolutional network built in C++, and digits to train it on.
//
//   digits model FILE.onnx        builds the network and saves it
//   digits data FOLDER [COUNT]    draws COUNT digits (default 6000) and writes train and validation arrays there
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/philox.h"
#include "formats/npy.h"
#include "frontend/builder.h"
#include "frontend/onnx/export.h"

namespace {

using namespace hone;

void save_model(const std::string& path) {
  nn::Model model("digits");
  nn::Value x = model.input("image", {28, 28});
  x = nn::reshape(x, {1, 28, 28});
  x = nn::max_pool(nn::relu(nn::conv(x, 8, 3, {.same = true})), 2);
  x = nn::max_pool(nn::relu(nn::conv(x, 16, 3, {.same = true})), 2);
  x = nn::relu(nn::dense(nn::flatten(x), 64));
  model.output("logits", nn::dense(x, 10));
  onnx::save(model.graph(), path);
}

struct Point {
  double x, y;
};
using Stroke = std::vector<Point>;  // a polyline in the unit square, y downwards

/// Each digit as pen strokes.
const std::vector<std::vector<Stroke>>& glyphs() {
  static const std::vector<std::vector<Stroke>> strokes = {
      {{{.5, .1}, {.75, .25}, {.8, .5}, {.75, .75}, {.5, .9}, {.25, .75}, {.2, .5}, {.25, .25}, {.5, .1}}},
      {{{.35, .25}, {.55, .1}, {.55, .9}}},
      {{{.25, .25}, {.4, .1}, {.65, .12}, {.75, .3}, {.6, .55}, {.25, .9}, {.8, .9}}},
      {{{.25, .15}, {.6, .1}, {.75, .28}, {.5, .47}, {.78, .68}, {.6, .9}, {.22, .85}}},
      {{{.65, .9}, {.65, .1}, {.2, .62}, {.85, .62}}},
      {{{.75, .1}, {.3, .1}, {.27, .45}, {.6, .42}, {.77, .65}, {.6, .9}, {.22, .85}}},
      {{{.65, .1}, {.35, .35}, {.25, .7}, {.5, .9}, {.75, .72}, {.6, .5}, {.28, .62}}},
      {{{.2, .1}, {.8, .1}, {.45, .9}}, {{.35, .5}, {.7, .5}}},
      {{{.5, .48}, {.28, .3}, {.5, .1}, {.72, .3}, {.5, .48}, {.22, .7}, {.5, .9}, {.78, .7}, {.5, .48}}},
      {{{.72, .38}, {.5, .52}, {.27, .32}, {.48, .1}, {.72, .3}, {.68, .6}, {.5, .9}}},
  };
  return strokes;
}

double distance_to_segment(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
  const double t = length2 == 0 ? 0 : std::fmin(1, std::fmax(0, ((p.x - a.x) * dx + (p.y - a.y) * dy) / length2));
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

/// Sample `number`: shifted, turned, scaled and sheared, with pens of different widths and noise on top. Pixels 0..255.
void draw(std::uint64_t number, int digit, std::uint8_t* pixels) {
  std::uint64_t drawn = 0;
  const auto between = [&](double low, double high) { return low + (high - low) * philox_uniform(1, number, drawn++).first; };
  const double angle = between(-.3, .3), scale = between(.65, .95), shear = between(-.25, .25), shift_x = between(-.12, .12), shift_y = between(-.12, .12);
  const double pen = between(.035, .075), ink = between(.65, 1), noise = between(0, .25);
  for (int row = 0; row < 28; ++row) {
    for (int column = 0; column < 28; ++column) {
      const double u = ((column + .5) / 28 - .5 - shift_x) / scale, v = ((row + .5) / 28 - .5 - shift_y) / scale;
      const Point p = {std::cos(angle) * u + std::sin(angle) * v + shear * v + .5, -std::sin(angle) * u + std::cos(angle) * v + .5};
      double nearest = 1;
      for (const Stroke& stroke : glyphs()[static_cast<std::size_t>(digit)])
        for (std::size_t i = 0; i + 1 < stroke.size(); ++i) nearest = std::fmin(nearest, distance_to_segment(p, stroke[i], stroke[i + 1]));
      const double value = ink / (1 + std::exp((nearest - pen) / .012)) + noise * between(0, 1);
      pixels[row * 28 + column] = static_cast<std::uint8_t>(255 * std::fmin(1, value));
    }
  }
}

void save_part(const std::string& folder, const std::string& part, std::uint64_t from, std::int64_t count) {
  std::vector<std::int64_t> labels;
  const Tensor images = Tensor::make(DType::kU8, {count, 28, 28}, [&](std::span<std::byte> bytes) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t number = from + static_cast<std::uint64_t>(i);
      labels.push_back(static_cast<std::int64_t>(philox_uniform(2, number, 0).first * 10));
      draw(number, static_cast<int>(labels.back()), reinterpret_cast<std::uint8_t*>(bytes.data()) + i * 28 * 28);
    }
  });
  write_npy(folder + "/" + part + "_images.npy", images);
  write_npy(folder + "/" + part + "_labels.npy", Tensor::of<std::int64_t>({count}, std::span<const std::int64_t>(labels)));
}

int usage() {
  fmt::print(stderr, "usage: digits model FILE.onnx | digits data FOLDER [COUNT]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  try {
    if (what == "model" and argc == 3) {
      save_model(argv[2]);
    } else if (what == "data" and argc <= 4) {
      const std::int64_t count = argc == 4 ? std::atoll(argv[3]) : 6000;
      if (count < 10 or count > 1'000'000) return usage();
      make_folders(argv[2]);
      save_part(argv[2], "train", 0, count);
      save_part(argv[2], "valid", static_cast<std::uint64_t>(count), count / 5);
    } else {
      return usage();
    }
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
  return 0;
}
