// Einstein sums.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

void add_einsum_cases(GradientCases& cases) {
  const auto add = [&](const char* equation, std::vector<GradientInput> inputs) { cases.add("Einsum", equation, std::move(inputs), {{"equation", equation}}); };
  add("ij,jk->ik", {x({2, 3}), x({3, 4})});
  add("ij,jk", {x({"N", 3}), x({3, 4})});
  add("bij,bjk->bik", {x({2, 2, 3}), x({2, 3, 4})});
  add("ij->ji", {x({2, 3})});
  add("ij->", {x({2, 3})});
  add("ij->j", {x({3, 2})});
  add("ii->i", {x({3, 3})});
  add("ii", {x({4, 4})});
  add("bii->bi", {x({2, 3, 3})});
  add("i,i->", {x({5}), x({5})});
  add("i,j->ij", {x({3}), x({4})});
  add("ij,ij->ij", {x({2, 3}), x({2, 3})});
  add("ij,ij->i", {x({2, 3}), x({2, 3})});
  add("...ij,...jk->...ik", {x({2, 2, 2, 3}), x({2, 2, 3, 2})});
  add("...ij,jk->...ik", {x({2, 2, 3}), x({3, 2})});
  add("...i,...i->...", {x({2, 1, 3}), x({4, 3})});
  add("i...->...", {x({3, 2, 2})});
  add("ij,jk,kl->il", {x({2, 3}), x({3, 2}), x({2, 4})});
  add("ijk,jil,kl->ij", {x({2, 3, 2}), x({3, 2, 4}), x({2, 4})});
  add("bhqd,bkhd->bhqk", {x({"N", 2, 3, 2}), x({"N", 4, 2, 2})});
  add("ij,k->j", {x({2, 3}), x({4})});
  add("iij,jkk->ik", {x({2, 2, 3}), x({3, 4, 4})});
  add("ij, Ij -> iI", {x({2, 3}), x({4, 3})});
  add("->", {x({})});
  cases.add("Einsum", "a constant operand", {x({"N", 3}), constant(x({3, 4}))}, {{"equation", "ij,jk->ik"}});
  cases.add("Einsum", "one operand twice", {x({3, 3})}).nodes([](TestModel& model) { model.node("Einsum", {"x0", "x0"}, {"y0"}).set("equation", "ij,jk->ik"); });
}

}  // namespace hone::test
