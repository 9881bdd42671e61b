#include "backends/llvm/storage.h"

#include <bit>
#include <cmath>

namespace hone {

namespace {

using llvm::Value;

constexpr int kF32MantissaBits = 23, kF32Bias = 127;
constexpr std::uint32_t kF32Infinity = 0x7f800000;

/// One conversion of values shaped like `like` under construction. Denormals of f32 never meet float arithmetic here: threads may run with denormals as zero.
class Conversion {
 public:
  Conversion(llvm::IRBuilder<>& ir, const FloatFormat& format, const Value* like)
      : ir_(ir),
        format_(format),
        bits_(shaped_like(like, ir.getInt32Ty())),
        float_(shaped_like(like, ir.getFloatTy())),
        shift_(kF32MantissaBits - format.mantissa_bits),
        sign_bit_(1U << format.magnitude_bits()) {}

  Value* widen(Value* loaded) {
    Value* code = ir_.CreateZExt(loaded, bits_);
    if (like_f32()) return as_float(ir_.CreateShl(code, shift_));
    Value* magnitude = ir_.CreateAnd(code, sign_bit_ - 1);
    Value* normal = ir_.CreateAdd(ir_.CreateShl(magnitude, shift_), number(static_cast<std::uint32_t>(rebias()) << kF32MantissaBits));
    Value* result = ir_.CreateSelect(ir_.CreateICmpULT(magnitude, number(1U << format_.mantissa_bits)), lowest_codes(magnitude), normal);
    Value* special = number(kF32Infinity | 0x400000);
    if (format_.has_infinity()) special = ir_.CreateSelect(ir_.CreateICmpEQ(magnitude, number(format_.beyond)), number(kF32Infinity), special);
    Value* is_special = ir_.CreateICmpUGT(magnitude, number(format_.max));
    if (format_.sign == FloatFormat::Sign::kSignedWithoutMinusZero)
      is_special = ir_.CreateOr(is_special, ir_.CreateICmpEQ(ir_.CreateAnd(code, sign_bit_ * 2 - 1), number(sign_bit_)));
    result = ir_.CreateSelect(is_special, special, result);
    if (format_.sign == FloatFormat::Sign::kUnsigned) return as_float(result);
    return as_float(ir_.CreateOr(result, ir_.CreateShl(ir_.CreateAnd(code, sign_bit_), 31 - format_.magnitude_bits())));
  }

  /// The code of an f32, as an i32.
  Value* narrow(Value* value, Rounding rounding, bool saturate) {
    Value* bits = as_bits(value);
    if (like_f32() and format_.has_infinity() and not saturate) return shorter(value, bits, rounding);
    Value* magnitude = ir_.CreateAnd(bits, 0x7fffffff);
    Value* rounded = ir_.CreateAdd(magnitude, addend(magnitude, rounding));
    Value* code = ir_.CreateLShr(ir_.CreateSub(rounded, number(static_cast<std::uint32_t>(rebias()) << kF32MantissaBits)), shift_);
    if (not format_.has_zero()) code = without_zero(magnitude, code, rounding, saturate);
    else if (not like_f32()) code = ir_.CreateSelect(ir_.CreateICmpULT(magnitude, number(f32_bits(1 - format_.bias))), denormal(magnitude), code);
    code = ir_.CreateSelect(ir_.CreateICmpUGT(code, number(format_.max)), number(saturate ? format_.max : format_.beyond), code);
    code = ir_.CreateSelect(ir_.CreateICmpUGT(magnitude, number(kF32Infinity)), number(format_.nan), code);
    return with_sign(code, bits);
  }

 private:
  int rebias() const { return kF32Bias - format_.bias; }
  /// The exponents and denormals of f32 itself: only the mantissa is shorter.
  bool like_f32() const { return rebias() == 0 and format_.has_zero(); }
  llvm::Constant* number(std::uint32_t value) const { return llvm::ConstantInt::get(bits_, value); }
  Value* as_float(Value* bits) const { return ir_.CreateBitCast(bits, float_); }
  Value* as_bits(Value* value) const { return ir_.CreateBitCast(value, bits_); }
  static std::uint32_t f32_bits(int exponent) { return static_cast<std::uint32_t>(exponent + kF32Bias) << kF32MantissaBits; }
  Value* power_of_two(int exponent) const { return llvm::ConstantFP::get(float_, std::ldexp(1.0, exponent)); }

  /// What codes with exponent 0 stand for: denormals, or the smallest number of a format that has no zero, which is a denormal of f32.
  Value* lowest_codes(Value* magnitude) {
    if (not format_.has_zero()) return number(0x400000);
    return as_bits(ir_.CreateFMul(ir_.CreateUIToFP(magnitude, float_), power_of_two(1 - format_.bias - format_.mantissa_bits)));
  }

  /// What to add before the low bits fall off. Half a unit less one, and one for odd values, rounds to nearest even; a mantissa that is nothing but its leading
  /// 1 is odd.
  Value* addend(Value* magnitude, Rounding rounding) {
    const std::uint32_t unit = 1U << shift_;
    if (rounding != Rounding::kNearest) return number(rounding == Rounding::kUp ? unit - 1 : 0);
    Value* odd = format_.mantissa_bits == 0 ? number(1) : ir_.CreateAnd(ir_.CreateLShr(magnitude, shift_), 1);
    return ir_.CreateAdd(odd, number(unit / 2 - 1));
  }

  /// A mantissa that overflows steps up the exponent, at last to infinity, and leaves the sign above alone.
  Value* shorter(Value* value, Value* bits, Rounding rounding) {
    Value* code = ir_.CreateLShr(ir_.CreateAdd(bits, addend(bits, rounding)), shift_);
    Value* nan = ir_.CreateOr(ir_.CreateAnd(ir_.CreateLShr(bits, shift_), sign_bit_), format_.nan);
    return ir_.CreateSelect(ir_.CreateFCmpUNO(value, value), nan, code);
  }

  /// Adding a number whose unit is the smallest denormal rounds to it.
  Value* denormal(Value* magnitude) {
    const int exponent = 1 - format_.bias + shift_;
    return ir_.CreateSub(as_bits(ir_.CreateFAdd(as_float(magnitude), power_of_two(exponent))), number(f32_bits(exponent)));
  }

  /// The smallest number, 2^-127, and what lies below the next.
  Value* without_zero(Value* magnitude, Value* code, Rounding rounding, bool saturate) {
    const std::uint32_t smallest = 0x400000, next = 2 * smallest;
    const std::uint32_t first_up = rounding == Rounding::kNearest ? smallest + smallest / 2 : rounding == Rounding::kUp ? smallest + 1 : next;
    Value* low = ir_.CreateZExt(ir_.CreateICmpUGE(magnitude, number(first_up)), bits_);
    Value* result = ir_.CreateSelect(ir_.CreateICmpULT(magnitude, number(next)), low, code);
    return ir_.CreateSelect(ir_.CreateICmpULT(magnitude, number(smallest)), number(saturate ? 0 : format_.nan), result);
  }

  Value* with_sign(Value* code, Value* bits) {
    if (format_.sign == FloatFormat::Sign::kUnsigned)  // a -0 is 0
      return ir_.CreateSelect(ir_.CreateICmpUGT(bits, number(0x80000000)), number(format_.nan), code);
    Value* with = ir_.CreateOr(code, ir_.CreateAnd(ir_.CreateLShr(bits, 31 - format_.magnitude_bits()), sign_bit_));
    if (format_.sign == FloatFormat::Sign::kSigned) return with;
    return ir_.CreateSelect(ir_.CreateICmpEQ(code, number(0)), code, with);
  }

  llvm::IRBuilder<>& ir_;
  const FloatFormat& format_;
  llvm::Type *bits_, *float_;
  int shift_;
  std::uint32_t sign_bit_;
};

/// The f32 next to an f64 (infinity from 2^128 on) whose last bit is 1 where it is not the same number: rounding that again, to fewer bits, gives what rounding
/// the f64 would have given.
Value* to_odd(llvm::IRBuilder<>& ir, Value* value) {
  llvm::Type *i32 = shaped_like(value, ir.getInt32Ty()), *f32 = shaped_like(value, ir.getFloatTy());
  Value* nearest = ir.CreateFPTrunc(value, f32);
  Value* bits = ir.CreateBitCast(nearest, i32);
  Value* back = ir.CreateFPExt(nearest, value->getType());
  Value* magnitude = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value);
  Value* in_range = ir.CreateFCmpOLT(magnitude, llvm::ConstantFP::get(value->getType(), 0x1p128));
  Value* inexact = ir.CreateAnd(ir.CreateFCmpONE(back, value), in_range);
  Value* even = ir.CreateICmpEQ(ir.CreateAnd(bits, 1), llvm::ConstantInt::get(i32, 0));
  Value* too_large = ir.CreateFCmpOGT(ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back), magnitude);
  Value* step = ir.CreateSelect(too_large, llvm::ConstantInt::getAllOnesValue(i32), llvm::ConstantInt::get(i32, 1));
  Value* moved = ir.CreateSelect(ir.CreateAnd(inexact, even), ir.CreateAdd(bits, step), bits);
  return ir.CreateBitCast(moved, f32);
}

Value* low_bits(llvm::IRBuilder<>& ir, DType dtype, Value* value) {
  const int unused = 32 - info(dtype).bits;
  Value* raised = ir.CreateShl(value, unused);
  return info(dtype).is_signed ? ir.CreateAShr(raised, unused) : ir.CreateLShr(raised, unused);
}

bool by_instruction(DType dtype, HalfConversion half) { return dtype == DType::kF16 and half == HalfConversion::kInstruction; }

}  // namespace

llvm::Type* value_type(llvm::LLVMContext& context, DType dtype) {
  dtype = info(dtype).arithmetic;
  if (is_float(dtype)) return dtype == DType::kF64 ? llvm::Type::getDoubleTy(context) : llvm::Type::getFloatTy(context);
  return llvm::Type::getIntNTy(context, dtype == DType::kBool ? 1 : static_cast<unsigned>(info(dtype).bits));
}

llvm::Type* storage_type(llvm::LLVMContext& context, DType dtype) {
  if (is_storage_only(dtype) or dtype == DType::kBool) return llvm::Type::getIntNTy(context, static_cast<unsigned>(size_of(dtype) * 8));
  return value_type(context, dtype);
}

llvm::Type* shaped_like(const Value* like, llvm::Type* element) {
  const auto* vector = llvm::dyn_cast<llvm::VectorType>(like->getType());
  return vector == nullptr ? element : llvm::VectorType::get(element, vector->getElementCount());
}

Value* widen(llvm::IRBuilder<>& ir, DType storage, Value* loaded, HalfConversion half) {
  if (storage == DType::kBool) return ir.CreateICmpNE(loaded, llvm::ConstantInt::get(loaded->getType(), 0));
  if (not is_storage_only(storage)) return loaded;
  if (not is_float(storage)) return ir.CreateIntCast(loaded, shaped_like(loaded, ir.getInt32Ty()), info(storage).is_signed);
  if (by_instruction(storage, half)) {
    Value* as_half = ir.CreateBitCast(loaded, shaped_like(loaded, ir.getHalfTy()));
    return ir.CreateFPExt(as_half, shaped_like(loaded, ir.getFloatTy()));
  }
  return Conversion(ir, float_format(storage), loaded).widen(loaded);
}

Value* narrow(llvm::IRBuilder<>& ir, DType storage, Value* value, HalfConversion half) {
  if (storage == DType::kBool) return ir.CreateZExt(value, shaped_like(value, ir.getInt8Ty()));
  if (not is_storage_only(storage)) return value;
  llvm::Type* memory = shaped_like(value, storage_type(ir.getContext(), storage));
  if (not is_float(storage)) return ir.CreateTrunc(low_bits(ir, storage, value), memory);
  if (by_instruction(storage, half)) return ir.CreateBitCast(ir.CreateFPTrunc(value, shaped_like(value, ir.getHalfTy())), memory);
  return ir.CreateTrunc(Conversion(ir, float_format(storage), value).narrow(value, Rounding::kNearest, false), memory);
}

Value* round_to(llvm::IRBuilder<>& ir, StorageRounding to, Value* value, HalfConversion half) {
  if (not is_float(to.dtype)) return low_bits(ir, to.dtype, value);
  if (value->getType()->getScalarType()->isDoubleTy()) value = to_odd(ir, value);
  if (by_instruction(to.dtype, half)) return widen(ir, to.dtype, narrow(ir, to.dtype, value, half), half);
  Conversion conversion(ir, float_format(to.dtype), value);
  return conversion.widen(conversion.narrow(value, to.rounding, to.saturate));
}

}  // namespace hone
