// What is done from outside to a process that runs.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>

namespace hone::test {

/// May this process look into others that it has started? Containers may forbid it.
bool can_reach_into_processes();

/// Ends all TCP connections of the process to others of its job, as when its machine's network goes. How many there were.
int close_connections(pid_t process);

/// Flips the lowest bit of the byte in the middle wherever these bytes are in the process's memory that it may write and that is no file. In how many places.
int flip_bit(pid_t process, std::span<const std::byte> bytes);

}  // namespace hone::test
