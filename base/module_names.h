// The module that a node is of, by the layer that its name tells. PyTorch's TorchScript exporter tells calls of one module apart by a number: "enc/fc",
// "enc/fc_1", "enc/fc_2".
#pragma once

#include <string>
#include <string_view>

namespace hone {

/// "enc/fc" for "enc/fc_1": equal for all calls of a module. So is it for modules whose own names end in such numbers: what else is known must tell those
/// apart.
std::string without_calls(std::string_view layer);
/// "enc.0_1" for the layer "enc/enc.0_1", since PyTorch names a Sequential twice: what the names of the module's parameters would begin with, were it no call
/// of another.
std::string module_name(std::string_view layer);
/// Is the first a further call of the second, by their names?
bool is_further_call(std::string_view called, std::string_view module);
/// "enc.attention" for the parameter "enc.attention.out.bias" and "enc.attention_1", or any module so deep in it; "" if it is not in one.
std::string ancestor_like(std::string_view parameter, std::string_view module);

}  // namespace hone
