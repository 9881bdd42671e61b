#include "runtime/library/recurrent.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/alignment.h"
#include "base/tensor.h"
#include "runtime/library/played_call.h"

namespace hone {

namespace {

using Numbers = std::vector<double>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// In f64, rounded where it is stored: steps forward, and back through them.
class HostRecurrent : public PlayedCall<double> {
 public:
  HostRecurrent(const LibrarySpec& spec, bool gradient) : PlayedCall(spec), case_(recurrent_of(spec)), states_(states_of(case_.cell)), columns_(gates_of(case_.cell) * case_.hidden), first_state_(kRecurrentWeights + (gradient ? 1 : 0)) {}

 protected:
  static Rows<double> matrix(Numbers& numbers, std::int64_t columns) { return {numbers.data(), columns}; }
  std::int64_t cells() const { return case_.samples * case_.hidden; }
  /// The row of a gate's feature among the weights, and its column among the gates.
  std::int64_t place(std::size_t gate, std::int64_t feature) const { return case_.gates[gate] * case_.hidden + feature; }

  /// Of every step, what its gates are, what a GRU's reset multiplies, and the states from before the first step on.
  void go_through() {
    const std::int64_t hidden = case_.hidden;
    gates_.assign(static_cast<std::size_t>(case_.steps * case_.samples * columns_), 0);
    products_.assign(case_.cell == RecurrentCell::kGru ? static_cast<std::size_t>(case_.steps * cells()) : 0, 0);
    for (std::size_t i = 0; i < states_; ++i) {
      path_[i].assign(static_cast<std::size_t>((case_.steps + 1) * cells()), 0);
      std::ranges::copy(read_[first_state_ + i], path_[i].begin());
    }
    for (std::int64_t step = 0; step < case_.steps; ++step)
      for (std::int64_t sample = 0; sample < case_.samples; ++sample) {
        const std::int64_t at = step * case_.samples + sample;
        const double *const x = matrix(read_[kRecurrentX], case_.features)[at], *const h = matrix(path_[0], hidden)[at];
        double *const gates = matrix(gates_, columns_)[at], *const next = matrix(path_[0], hidden)[at + case_.samples];
        const auto of_x = [&](std::int64_t row) { return read_[kRecurrentBias][static_cast<std::size_t>(row)] + dot(x, matrix(read_[kRecurrentW], case_.features)[row], case_.features); };
        const auto of_h = [&](std::int64_t row) { return read_[kRecurrentStateBias][static_cast<std::size_t>(row)] + dot(h, matrix(read_[kRecurrentR], hidden)[row], hidden); };
        for (std::int64_t i = 0; i < hidden; ++i) {
          const auto gate = [&](std::size_t number) -> double& { return gates[place(number, i)]; };
          const auto sum = [&](std::size_t number) { return of_x(place(number, i)) + of_h(place(number, i)); };
          switch (case_.cell) {
            case RecurrentCell::kTanh: next[i] = gate(0) = std::tanh(sum(0)); break;
            case RecurrentCell::kLstm: {
              gate(0) = sigmoid(sum(0)), gate(1) = sigmoid(sum(1)), gate(2) = std::tanh(sum(2)), gate(3) = sigmoid(sum(3));
              const double c = matrix(path_[1], hidden)[at + case_.samples][i] = gate(1) * matrix(path_[1], hidden)[at][i] + gate(0) * gate(2);
              next[i] = gate(3) * std::tanh(c);
              break;
            }
            case RecurrentCell::kGru: {
              const double product = matrix(products_, hidden)[at][i] = of_h(place(2, i));
              gate(0) = sigmoid(sum(0)), gate(1) = sigmoid(sum(1)), gate(2) = std::tanh(of_x(place(2, i)) + gate(0) * product);
              next[i] = gate(1) * h[i] + (1 - gate(1)) * gate(2);
              break;
            }
          }
        }
      }
  }

  const RecurrentCase case_;
  const std::size_t states_;
  const std::int64_t columns_;
  const std::size_t first_state_;
  Numbers gates_, products_;
  std::array<Numbers, 2> path_;
};

class RecurrentForward final : public HostRecurrent {
 public:
  explicit RecurrentForward(const LibrarySpec& spec) : HostRecurrent(spec, false) {}

 private:
  void play() override {
    go_through();
    std::copy(path_[0].begin() + cells(), path_[0].end(), made_[0].begin());
    for (std::size_t i = 0; i < states_; ++i) std::copy(path_[i].end() - cells(), path_[i].end(), made_[1 + i].begin());
  }
};

class RecurrentBackward final : public HostRecurrent {
 public:
  explicit RecurrentBackward(const LibrarySpec& spec) : HostRecurrent(spec, true) {}

 private:
  void play() override {
    go_through();
    for (std::size_t i = 0; i < states_; ++i) of_state_[i] = read_[first_state_ + states_ + i];
    of_x_.assign(static_cast<std::size_t>(columns_), 0);
    of_h_.assign(static_cast<std::size_t>(columns_), 0);
    for (std::int64_t step = case_.steps; step-- > 0;)
      for (std::int64_t sample = 0; sample < case_.samples; ++sample) go_back(step * case_.samples + sample, sample);
    for (std::size_t i = 0; i < states_; ++i) made_[kRecurrentWeights + i] = of_state_[i];
  }

  /// Through one step of one sample; of_state_ becomes the gradient of what it began with.
  void go_back(std::int64_t at, std::int64_t sample) {
    const std::int64_t hidden = case_.hidden;
    const double *const gates = matrix(gates_, columns_)[at], *const h = matrix(path_[0], hidden)[at], *const dy = matrix(read_[kRecurrentWeights], hidden)[at];
    double* const of_h = matrix(of_state_[0], hidden)[sample];
    for (std::int64_t i = 0; i < hidden; ++i) {
      const auto gate = [&](std::size_t number) { return gates[place(number, i)]; };
      const auto set = [&](std::size_t number, double of_x, double of_product) { of_x_[static_cast<std::size_t>(place(number, i))] = of_x, of_h_[static_cast<std::size_t>(place(number, i))] = of_product; };
      const auto set_sigmoid = [&](std::size_t number, double gradient) { gradient *= gate(number) * (1 - gate(number)), set(number, gradient, gradient); };
      const double gradient = of_h[i] + dy[i];
      of_h[i] = 0;
      switch (case_.cell) {
        case RecurrentCell::kTanh: set(0, gradient * (1 - gate(0) * gate(0)), gradient * (1 - gate(0) * gate(0))); break;
        case RecurrentCell::kLstm: {
          const double told = std::tanh(matrix(path_[1], hidden)[at + case_.samples][i]), before = matrix(path_[1], hidden)[at][i];
          double& of_c = matrix(of_state_[1], hidden)[sample][i];
          const double through = of_c + gradient * gate(3) * (1 - told * told), of_candidate = through * gate(0) * (1 - gate(2) * gate(2));
          set_sigmoid(0, through * gate(2)), set_sigmoid(1, through * before), set(2, of_candidate, of_candidate), set_sigmoid(3, gradient * told);
          of_c = through * gate(1);
          break;
        }
        case RecurrentCell::kGru: {
          const double of_candidate = gradient * (1 - gate(1)) * (1 - gate(2) * gate(2));
          set_sigmoid(0, of_candidate * matrix(products_, hidden)[at][i]), set_sigmoid(1, gradient * (h[i] - gate(2))), set(2, of_candidate, of_candidate * gate(0));
          of_h[i] = gradient * gate(1);
          break;
        }
      }
    }
    const double* const x = matrix(read_[kRecurrentX], case_.features)[at];
    for (std::int64_t row = 0; row < columns_; ++row) {
      const double dx = of_x_[static_cast<std::size_t>(row)], dh = of_h_[static_cast<std::size_t>(row)];
      add_scaled(matrix(made_[kRecurrentX], case_.features)[at], matrix(read_[kRecurrentW], case_.features)[row], dx, case_.features);
      add_scaled(matrix(made_[kRecurrentW], case_.features)[row], x, dx, case_.features);
      add_scaled(matrix(made_[kRecurrentR], hidden)[row], h, dh, hidden);
      add_scaled(of_h, matrix(read_[kRecurrentR], hidden)[row], dh, hidden);
      made_[kRecurrentBias][static_cast<std::size_t>(row)] += dx;
      made_[kRecurrentStateBias][static_cast<std::size_t>(row)] += dh;
    }
  }

  std::array<Numbers, 2> of_state_;  ///< by state, of all samples
  Numbers of_x_, of_h_;              ///< of the gates' sums, in the part that x gives and in the product with h
};

std::size_t bytes_of(std::initializer_list<std::int64_t> extents) { return static_cast<std::size_t>(checked_element_count(std::vector<std::int64_t>(extents))) * sizeof(float); }
std::size_t piece(std::size_t bytes) { return round_up(bytes, kRecurrentAlignment, "library scratch"); }

}  // namespace

RecurrentCase recurrent_of(const LibrarySpec& spec) {
  const std::vector<std::int64_t>& x = spec.operands[kRecurrentX]->shape;
  return {.cell = static_cast<RecurrentCell>(spec.attributes.at("cell").front()),
          .gates = spec.attributes.at("gates"),
          .steps = x[0],
          .samples = x[1],
          .features = x[2],
          .hidden = spec.operands[kRecurrentR]->shape[1],
          .tf32 = attribute_or(spec, "tf32", 0) != 0};
}

/// Version 9.19 is seen to lay out weights without gaps; to work in 8 MiB, the gates of all steps (of a cell without gates twice), the weights and some states; and to keep, for each step, one state's size of a cell without
/// gates, five of an LSTM's and six of a GRU's.
RecurrentNeeds most_needs(const RecurrentCase& of) {
  constexpr std::size_t kWhatever = std::size_t{32} << 20, kMore = 4096;
  const std::int64_t gates = gates_of(of.cell), times = of.cell == RecurrentCell::kLstm ? 6 : of.cell == RecurrentCell::kGru ? 7 : 2;
  const std::size_t weights = bytes_of({gates, of.hidden, of.features + of.hidden + 2});
  return {.weights = weights + 4 * static_cast<std::size_t>(gates) * kRecurrentAlignment,
          .work = kWhatever + 2 * bytes_of({of.steps, of.samples, gates, of.hidden}) + 2 * weights + 64 * bytes_of({of.samples, of.hidden}),
          .kept = kMore + bytes_of({of.steps, of.samples, times, of.hidden})};
}

/// The weights, the number of steps of each sample, and what cuDNN works in.
std::size_t recurrent_scratch(const RecurrentCase& of, const RecurrentNeeds& needs) { return piece(needs.weights) + piece(bytes_of({of.samples})) + piece(needs.work); }

/// That, the weights' gradients, y and what is kept of the forward pass.
std::size_t recurrent_gradient_scratch(const RecurrentCase& of, const RecurrentNeeds& needs) {
  return recurrent_scratch(of, needs) + piece(needs.weights) + piece(bytes_of({of.steps, of.samples, of.hidden})) + piece(needs.kept);
}

std::unique_ptr<LibraryCall> create_recurrent(const LibrarySpec& spec) { return std::make_unique<RecurrentForward>(spec); }
std::unique_ptr<LibraryCall> create_recurrent_gradient(const LibrarySpec& spec) { return std::make_unique<RecurrentBackward>(spec); }

}  // namespace hone
