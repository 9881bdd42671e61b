#include "ir/ops/ops.h"
#include "passes/passes.h"

namespace hone {

void update_if_finite(Graph& graph, ValueId loss) {
  Builder builder(graph);
  const Builder::Scope scope(builder, Loc{.derived = "update"}, Part::kUpdate);
  const Val good = op::is_finite(builder.val(loss));
  for (std::size_t i = 0; i < graph.aliases().size(); ++i) {
    const Alias alias = graph.aliases()[i];
    builder.redirect_alias(i, op::where(good, builder.val(alias.value), builder.val(alias.state)));
  }
}

}  // namespace hone
