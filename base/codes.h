// The one list of error codes. The hundreds digit is the kind of problem and decides the exit code.
#pragma once

#include <cstdint>
#include <string>

namespace hone {

// clang-format off
#define HONE_ERROR_CODES(X)                                             \
  /* 00xx: command line, exit 2 */                                      \
  X(kUsage,               1)  /* a wrong flag or value */               \
  X(kDevice,              2)  /* a device that is not here */           \
  /* 01xx: model, exit 3 */                                             \
  X(kNotOnnx,           101)  /* not an ONNX file, or a damaged one */  \
  X(kUnknownOp,         102)  /* an operator that is not supported */   \
  X(kOpset,             103)  /* an opset that is not supported */      \
  X(kBadAttribute,      104)  /* attribute missing or of a wrong value */ \
  X(kBadWeight,         105)  /* initializer whose data do not fit */   \
  X(kBadGraph,          106)  /* wrong structure: cycle, missing value, duplicate name */ \
  X(kShape,             107)  /* operand shapes that do not fit */      \
  X(kType,              108)  /* operand element types that do not fit */ \
  X(kNoGradient,        109)  /* no gradient where one is needed */     \
  X(kDynamic,           110)  /* a shape or value that must be known when compiling */ \
  X(kBadHir,            111)  /* .hir text that does not parse */       \
  X(kInvalidGraph,      112)  /* the verifier's finding */              \
  X(kGradientMismatch,  113)  /* --check-grad: a gradient that is off */ \
  X(kNothingToTrain,    114)  /* no weight that a gradient reaches */   \
  X(kTooLarge,          115)  /* a size beyond the limits */            \
  X(kModelWarning,      190)  /* worth a look, not an error */          \
  /* 02xx: recipe, exit 5 */                                            \
  X(kRecipeSyntax,      201)  /* not TOML */                            \
  X(kRecipeKey,         202)  /* unknown key */                         \
  X(kRecipeValue,       203)  /* wrong type or value */                 \
  X(kRecipeModel,       204)  /* does not fit the model */              \
  /* 03xx: data, exit 4 */                                              \
  X(kDataFormat,        301)  /* not the file format it claims to be */ \
  X(kDataShape,         302)  /* shape that does not fit */             \
  X(kDataType,          303)  /* element type that does not fit */      \
  X(kDataLength,        304)  /* arrays of different length */          \
  X(kDataRange,         305)  /* a value out of range: labels, ids */   \
  X(kDataName,          306)  /* missing, unknown or duplicate name */  \
  /* 04xx: file I/O, exit 7 */                                          \
  X(kFileOpen,          401)  /* cannot be opened */                    \
  X(kFileRead,          402)  /* cannot be read */                      \
  X(kFileWrite,         403)  /* cannot be written */                   \
  X(kCheckpoint,        404)  /* no checkpoint that can be used */      \
  /* 05xx: plan, exit 10 */                                             \
  X(kPlanFormat,        501)  /* not a plan, or a damaged one */        \
  X(kPlanVersion,       502)  /* another version or an unknown feature */ \
  X(kPlanMismatch,      503)  /* does not fit device, weights or recipe */ \
  X(kPlanEntry,         504)  /* has no such entry point */             \
  /* 06xx: numeric stop, exit 8 */                                      \
  X(kNotFinite,         601)  /* the loss is NaN or infinite */         \
  /* 07xx: memory, exit 6 */                                            \
  X(kMemory,            701)  /* does not fit into memory or a limit */ \
  /* 08xx: collective or peer, exit 9 */                                \
  X(kPeer,              801)  /* another replica failed, or did not come */ \
  /* 09xx: a device that breaks, exit 11 */                             \
  X(kDeviceLost,        901)  /* a device that failed while it worked */
// clang-format on

enum class Code : std::uint16_t {
#define HONE_CODE(name, number) name = number,
  HONE_ERROR_CODES(HONE_CODE)
#undef HONE_CODE
};

/// "HN-0107"
std::string to_string(Code code);

/// The process exit code of INTERFACE.md: 2 usage, 3 model, 4 data, 5 recipe, 6 memory, 7 file I/O, 8 numeric, 9 peer, 10 plan, 11 a lost device.
int exit_code(Code code);

}  // namespace hone
