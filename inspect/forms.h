// The forms in which a file is shown: hone-dump --as.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/contents.h"
#include "inspect/describe.h"

namespace hone {

/// A form of a file, for standard output.
struct Form {
  std::string_view name;
  std::string_view doc;
  std::string (*write)(const Contents& contents, const DescribeOptions& options);
};

std::span<const Form> forms();
/// Throws Error kUsage for a name that is none, naming the nearest.
const Form& find_form(const std::string& name);

/// What is in the file, in lines for a terminal: of a model or a graph its .hir text, of a plan a stage, or without one a page about it, else a table of tensors.
std::string text_form(const Contents& contents, const DescribeOptions& options);

/// A plan's model with the values that training begins with, and that training as TrainingInfoProto; of a stage of options that graph as a plain model that runs, as of a .hir file. What
/// a person should know, such as what ONNX has no place for, goes to `notes`, a sentence each.
std::string onnx_form(const Contents& contents, const DescribeOptions& options, std::vector<std::string>& notes);

}  // namespace hone
