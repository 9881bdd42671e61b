// A model's nodes written in our ops. Bodies inside of bodies and functions that call functions are tasks on a stack of its own: how deep a file goes, costs no stack of ours.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/onnx/detached.h"
#include "frontend/onnx/free_batch.h"
#include "frontend/onnx/functions.h"
#include "frontend/onnx/scope.h"
#include "frontend/onnx/symbols.h"
#include "frontend/onnx/unknown_operators.h"
#include "frontend/onnx/values.h"

namespace hone::onnx {

/// How much functions, branches and loops may become when they are written out.
inline constexpr std::size_t kMostWrittenNodes = 1 << 18;
inline constexpr std::size_t kMostTasks = 256;

/// What all rounds of an import share.
struct ImportContext {
  const GraphProto& graph;
  const std::string& folder;  ///< of external data
  std::string file;
  std::int64_t opset;
  Functions functions;
  PreparedBody main;
  std::vector<std::optional<Tensor>> initializers;
  Roles roles = {};                                 ///< of initializers that are not what they look like
  std::map<const void*, PreparedBody> bodies = {};  ///< of functions and nodes, by their proto
  std::optional<FreeBatch> batch = {};              ///< of a model that was exported for one size of it
  DetachedOperands detached = DetachedOperands(graph);
  std::set<std::string> left_out = {};              ///< outputs of the graph that `main` has not; inputs that nothing else reads are left out with them

  const PreparedBody& prepared(const GraphProto& graph);
  const PreparedBody& prepared(const FunctionProto& function);
};

/// Something that takes several steps: a body, a loop.
class Task {
 public:
  virtual ~Task() = default;
  /// Goes on until it has pushed another task (nothing) or is done (its results). `results`: of the task that it pushed last. A failed item is a problem that has
  /// been reported; a list that is too short ends in failed ones.
  virtual std::optional<std::vector<Item>> resume(std::vector<Item> results) = 0;
};

class GraphImport {
 public:
  /// Holds problems back from its making on: a body is written to see whether it can be written so.
  class Trial {
   public:
    explicit Trial(GraphImport& import);
    /// Ends it. What was found goes to the problems of the import, or is forgotten.
    enum class Keep : bool { kNothing, kProblems };
    void end(Keep keep);
    bool has_problems() const { return problems_.has_errors(); }

   private:
    GraphImport& import_;
    Diags problems_;
    Diags* outer_;
    std::set<const NodeProto*> failed_before_;
  };

  GraphImport(ImportContext& context, Diags& diags);

  /// The model's graph. Throws Error for a model that becomes too large; all other problems go to `diags`.
  Graph run(Symbols& symbols);
  /// After run(): the outputs that could not be made, for reasons that have been reported.
  const std::vector<std::string>& failed_outputs() const { return failed_outputs_; }

  // --- For tasks ---
  ImportContext& context() { return context_; }
  void push(std::unique_ptr<Task> task) { tasks_.push_back(std::move(task)); }
  /// Pushes the writing of a node's body, in `region`, with its inputs standing for `inputs`. `step` ("then", "loop[3]") goes in front of names.
  void push_body(const BodyAttribute& body, const Scope& at, Region& region, std::vector<Item> inputs, const ImportNode& node, const std::string& step);
  /// Pushes the writing of what `node` calls.
  void push_call(const FunctionProto& function, const Scope& scope, const ImportNode& node, const NodeProto& proto, const std::vector<Item>& operands);
  /// Reports what a node throws; of a node that is written several times, the first time.
  void report(const Error& error, const NodeProto& proto, const Loc& loc);
  UnknownOperators& unknown() { return unknown_; }
  Region& root() { return root_; }
  /// A constant that is one value however often its node is written; nothing for the first time.
  std::map<const void*, Item>& constants() { return constants_; }
  /// Counts what is written from bodies and functions.
  void count(std::size_t nodes, const Loc& loc);
  /// Is `function` being written, further out?
  bool is_open(const FunctionProto& function) const { return open_.contains(&function); }
  void open(const FunctionProto& function) { open_.insert(&function); }
  void close(const FunctionProto& function) { open_.erase(&function); }

 private:
  std::vector<Item> run_tasks();
  void add_initializers(const GraphProto& graph, Scope& scope);
  void add_outputs(const std::vector<Item>& results, Symbols& symbols);
  void add_output(const std::string& name, Val value, const TypeProto& declared, Symbols& symbols);

  ImportContext& context_;
  Diags& diags_;
  Diags* found_ = &diags_;  ///< where problems of nodes go: a trial's or diags_
  Region root_;
  UnknownOperators unknown_;
  std::map<const void*, Item> constants_;  ///< of Constant nodes and of initializers inside of bodies
  std::set<const FunctionProto*> open_;
  std::set<const NodeProto*> failed_;
  std::set<const PreparedBody*> reported_;
  std::set<std::string> outputs_;
  std::vector<std::string> failed_outputs_;
  std::size_t written_ = 0;
  std::vector<std::unique_ptr<Task>> tasks_;  ///< destroyed first: tasks close functions
};

}  // namespace hone::onnx
