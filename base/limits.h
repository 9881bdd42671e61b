// How much of anything Hone takes from a file. Inputs are not trusted: each limit is far beyond what a real model or data
// set needs, and keeps a made-up number from exhausting the machine. Beyond it: Error kTooLarge, naming the limit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hone::limits {

/// Elements of one tensor; checked_element_count() in base/tensor.h enforces it.
inline constexpr std::int64_t kTensorElements = std::int64_t{1} << 40;
/// Axes of one tensor.
inline constexpr std::size_t kRank = 32;
/// Nodes of one graph, its bodies included.
inline constexpr std::size_t kNodes = 4'000'000;
/// Levels of bodies in bodies of a graph.
inline constexpr int kBodyDepth = 16;
/// Bytes of a name (node, value, file in an archive).
inline constexpr std::size_t kNameBytes = 64 * 1024;
/// Bytes of a text file: recipe, .hir.
inline constexpr std::uint64_t kTextFileBytes = std::uint64_t{256} << 20;
/// Bytes taken from a pipe, or from whatever cannot be mapped.
inline constexpr std::uint64_t kPipeBytes = std::uint64_t{16} << 30;

/// Bytes of one protobuf message: the format's own limit.
inline constexpr std::uint64_t kProtobufBytes = (std::uint64_t{1} << 31) - 1;
/// Strings and messages in one protobuf file, each of which costs memory even when it is empty.
inline constexpr std::size_t kProtobufParts = 16'000'000;
/// Levels of messages in messages; a graph inside a graph takes three.
inline constexpr int kProtobufDepth = 100;

/// Files in one zip archive.
inline constexpr std::size_t kArchiveEntries = 1'000'000;
/// Bytes that one compressed file or archive entry may become.
inline constexpr std::uint64_t kDecompressedBytes = std::uint64_t{64} << 30;
/// How many times larger than its compressed form data may become (deflate ends at about 1032) ...
inline constexpr std::uint64_t kDecompressedRatio = 1100;
/// Bytes of a .npy header.
inline constexpr std::size_t kNpyHeaderBytes = 64 * 1024;
/// Bytes of a safetensors header; the reference reader takes as many.
inline constexpr std::uint64_t kSafetensorsHeaderBytes = 100'000'000;

/// Threads of one process.
inline constexpr int kThreads = 1024;

}  // namespace hone::limits
