// The cells that recurrent layers are made of, where libraries have them.
#pragma once

#include <cstdint>
#include <string_view>

namespace hone {

/// What a layer does in each step, with x W the step's own products, h the state before, R the weights of the state, and a bias in each product:
///   kTanh  h' = tanh(x W + h R)
///   kLstm  c' = sigmoid(forget) c + sigmoid(input) tanh(candidate), h' = sigmoid(output) tanh(c'), each gate a part of x W + h R
///   kGru   h' = (1 - z) tanh(x W + r (h R)) + z h, with r = sigmoid(reset) and z = sigmoid(update), parts of x W + h R
/// The numbers are cuDNN's (cudnnRNNMode_t), and so is the order in which gates are named: input, forget, candidate, output; reset, update, candidate. Its cell with ReLU is not among them: nothing says that it keeps NaNs.
enum class RecurrentCell : std::uint8_t { kTanh = 1, kLstm = 2, kGru = 3 };

inline constexpr std::int64_t kFirstRecurrentCell = 1, kLastRecurrentCell = 3;
constexpr std::int64_t gates_of(RecurrentCell cell) { return cell == RecurrentCell::kLstm ? 4 : cell == RecurrentCell::kGru ? 3 : 1; }
/// h, and c if it has one.
constexpr std::size_t states_of(RecurrentCell cell) { return cell == RecurrentCell::kLstm ? 2 : 1; }
constexpr std::string_view to_string(RecurrentCell cell) { return cell == RecurrentCell::kTanh ? "RNN" : cell == RecurrentCell::kLstm ? "LSTM" : "GRU"; }

}  // namespace hone
