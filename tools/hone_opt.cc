// hone-opt: passes over a .hir file, for tests and for the curious.
#include <fmt/format.h>

#include <array>

#include "base/files.h"
#include "base/text.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/passes.h"
#include "tools/command_line.h"
#include "tools/output_file.h"

namespace hone {
namespace {

struct Arguments {
  std::string file, passes, out = "-";
};

std::string pass_list() {
  std::string text = "passes, run in the order given:";
  for (const NamedPass& pass : named_passes()) text += fmt::format(" {} ({});", pass.name, pass.doc);
  return text;
}

int run(const Arguments& arguments) {
  check_is_no_input("-o", arguments.out, std::array{arguments.file});
  Graph graph = parse_graph(read_file(arguments.file), arguments.file);
  verify(graph);
  run_named_passes(graph, arguments.passes);
  verify(graph);
  const std::string text = print(graph);
  if (arguments.out == "-") print_data(text);
  else write_file_atomically(arguments.out, std::as_bytes(std::span(text)));
  return 0;
}

Tool make_tool(Arguments& a) {
  return {.name = "hone-opt",
          .doc = "Runs passes on a .hir file and prints the result.",
          .commands = {{"",
                        "",
                        {{"FILE", "", "the .hir file, - for standard input", &a.file, true},
                         {"--passes", "a,b,c", pass_list(), &a.passes},
                         {"-o,--out", "FILE", "where the result goes", &a.out}},
                        [&a] { return run(a); }}}};
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::Arguments arguments;
  return hone::run_tool(hone::make_tool(arguments), argc, argv);
}
