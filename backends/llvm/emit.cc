#include "backends/llvm/emit.h"

#include <llvm-c/Core.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "backends/llvm/blocking.h"
#include "backends/llvm/link.h"
#include "backends/llvm/loops.h"
#include "backends/llvm/object_cache.h"
#include "backends/llvm/own_math.h"
#include "base/check.h"
#include "base/parallel.h"

namespace hone {

namespace {

/// Kernels in one LLVM module. Modules are compiled side by side; which kernels share one does not depend on the number of threads.
constexpr std::size_t kGroup = 2;

/// To be raised whenever LLVM is asked for something else: what was kept of the code that it made before is of no use then.
constexpr int kHowCodeIsMade = 1;

struct Architecture {
  const char* triple;
  const char* features;  ///< beside what the processor's name stands for
};
/// 64-bit processors that lack prefetchw take it for no instruction at all.
constexpr Architecture kX86 = {"x86_64-unknown-linux-gnu", "+prfchw"};
/// Code for processors of a level of ours is for LLVM's processor of the psABI's, with what the level adds.
struct AddedLevel {
  std::string_view level, cpu, features;
};
constexpr AddedLevel kAmx = {"x86-64-v4-amx", "x86-64-v4", ",+amx-tile,+amx-bf16"};
/// PTX 7.8 is that of CUDA 11.8, the first that knows sm_90.
constexpr Architecture kNvidia = {"nvptx64-nvidia-cuda", "+ptx78"};

bool is_gpu(const EmitOptions& options) { return options.cpu.starts_with("sm_"); }
const Architecture& architecture_of(const EmitOptions& options) { return is_gpu(options) ? kNvidia : kX86; }

std::unique_ptr<llvm::TargetMachine> target_machine(const EmitOptions& options) {
  static std::once_flag registered;
  std::call_once(registered, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  const Architecture& architecture = architecture_of(options);
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(architecture.triple, error);
  HONE_CHECK(target != nullptr, std::string("LLVM has no target ") + architecture.triple + ": " + error);
  const std::unique_ptr<llvm::MCSubtargetInfo> processors(target->createMCSubtargetInfo(architecture.triple, "", ""));
  const bool has_added = options.cpu == kAmx.level;
  const std::string cpu(has_added ? kAmx.cpu : options.cpu), features = architecture.features + std::string(has_added ? kAmx.features : "");
  HONE_CHECK(processors->isCPUStringValid(cpu), "LLVM knows no processor " + cpu);
  constexpr llvm::CodeGenOptLevel kLevels[] = {llvm::CodeGenOptLevel::None, llvm::CodeGenOptLevel::Less, llvm::CodeGenOptLevel::Default,
                                               llvm::CodeGenOptLevel::Aggressive};
  const auto level = kLevels[std::clamp(options.opt_level, 0, 3)];
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(architecture.triple, cpu, features, llvm::TargetOptions(), llvm::Reloc::PIC_, llvm::CodeModel::Small, level));
  HONE_CHECK(machine != nullptr, "LLVM makes no target machine for " + options.cpu);
  return machine;
}

/// A module with its own context and target.
class Code {
 public:
  Code(std::span<const Kernel* const> kernels, const EmitOptions& options)
      : options_(options), machine_(target_machine(options)), module_(std::make_unique<llvm::Module>("hone", context_)) {
    module_->setTargetTriple(architecture_of(options).triple);
    module_->setDataLayout(machine_->createDataLayout());
    for (const Kernel* kernel : kernels) emit_kernel(*module_, *kernel, emit_target());
    if (in_blocks()) define_math(*module_);
    for (llvm::Function& function : *module_) {
      function.addFnAttr("target-cpu", machine_->getTargetCPU());
      if (not is_gpu(options) and has("+avx512f")) function.addFnAttr("prefer-vector-width", "512");
    }
    check();
  }

  std::size_t size() const { return module_->getInstructionCount(); }

  void optimize() {
    llvm::PipelineTuningOptions tuning;
    tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = true;
    llvm::PassBuilder builder(machine_.get(), tuning);
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    const llvm::OptimizationLevel levels[] = {llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1, llvm::OptimizationLevel::O2,
                                              llvm::OptimizationLevel::O3};
    const auto level = levels[std::clamp(options_.opt_level, 0, 3)];
    llvm::ModulePassManager passes =
        level == llvm::OptimizationLevel::O0 ? builder.buildO0DefaultPipeline(level) : builder.buildPerModuleDefaultPipeline(level);
    passes.run(*module_, modules);
  }

  std::string text() const {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module_->print(stream, nullptr);
    return text;
  }

  /// Object file or assembly of the optimized module, which is used up; taken from the cache if it was made before.
  std::string made(llvm::CodeGenFileType type, const ObjectCache& cache = ObjectCache()) {
    return cache.find_or_make(cache.is_open() ? source_of(type) : "", [&] {
      optimize();
      return generate(type);
    });
  }

 private:
  /// All that decides what LLVM makes of the module: itself, for whom it is, and by which LLVM.
  std::string source_of(llvm::CodeGenFileType type) const {
    unsigned major = 0, minor = 0, patch = 0;
    LLVMGetVersion(&major, &minor, &patch);
    std::string source;
    llvm::raw_string_ostream stream(source);
    stream << kHowCodeIsMade << '.' << major << '.' << minor << '.' << patch << ' ' << machine_->getTargetCPU() << ' ' << machine_->getTargetFeatureString() << ' ' << options_.opt_level << ' '
           << static_cast<int>(type) << '\n';
    llvm::WriteBitcodeToFile(*module_, stream);
    return source;
  }

  std::string generate(llvm::CodeGenFileType type) {
    llvm::SmallString<0> bytes;
    llvm::raw_svector_ostream stream(bytes);
    llvm::legacy::PassManager passes;
    HONE_CHECK(not machine_->addPassesToEmitFile(passes, stream, nullptr, type), "LLVM cannot emit code for " + options_.cpu);
    passes.run(*module_);
    return std::string(bytes);
  }

  bool in_blocks() const { return is_gpu(options_) or options_.form == KernelForm::kBlocks; }
  bool has(const char* feature) const { return machine_->getMCSubtargetInfo()->checkFeatures(feature); }

  EmitTarget emit_target() const {
    if (is_gpu(options_)) return {.half = HalfConversion::kInstruction, .multiply_add = MultiplyAdd::kFused, .vectors = {.lanes = 1, .registers = 0}, .signature = Signature::kLaunch};
    return {.half = has("+f16c") ? HalfConversion::kInstruction : HalfConversion::kArithmetic,
            .multiply_add = has("+fma") ? MultiplyAdd::kFused : MultiplyAdd::kApart,
            .vectors = has("+amx-bf16") and not in_blocks() ? kAvx512WithAmx : has("+avx512f") ? kAvx512 : has("+avx2") ? kAvx2 : kSse,
            .signature = in_blocks() ? Signature::kBlock : Signature::kRange};
  }

  void check() const {
    std::string problems;
    llvm::raw_string_ostream stream(problems);
    HONE_CHECK(not llvm::verifyModule(*module_, &stream), "the emitter wrote wrong LLVM IR: " + problems);
  }

  const EmitOptions& options_;
  llvm::LLVMContext context_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<llvm::Module> module_;
};

}  // namespace

namespace {

std::vector<const Kernel*> wanted(std::span<const Kernel* const> kernels, const EmitOptions& options) {
  std::vector<const Kernel*> all(kernels.begin(), kernels.end());
  if (options.only_for_matrices) std::erase_if(all, [](const Kernel* kernel) { return not uses_matrices(*kernel, kAvx512WithAmx); });
  return all;
}

}  // namespace

std::string emit_llvm(std::span<const Kernel* const> kernels, const EmitOptions& options, IrStage stage) {
  Code code(kernels, options);
  if (stage == IrStage::kOptimized) code.optimize();
  return code.text();
}

std::string emit_assembly(std::span<const Kernel* const> kernels, const EmitOptions& options) {
  return Code(kernels, options).made(llvm::CodeGenFileType::AssemblyFile);
}

std::vector<EmitOptions> options_for(std::span<const std::string> processors) {
  std::vector<EmitOptions> options;
  const bool has_usual = std::ranges::find(processors, kAmx.cpu) != processors.end();
  for (const std::string& processor : processors) options.push_back({.cpu = processor, .only_for_matrices = has_usual and processor == kAmx.level});
  return options;
}

std::string emit_texts(std::span<const Kernel* const> kernels, std::span<const EmitOptions> processors, std::string_view kind) {
  const bool is_llvm = kind == "llvm";
  std::vector<std::string> texts(processors.size());
  on_all_cores(texts.size(), [&](std::size_t i) {
    const std::vector<const Kernel*> mine = wanted(kernels, processors[i]);
    const std::string comment = is_llvm ? ";" : is_gpu(processors[i]) ? "//" : "#";
    texts[i] = comment + " code for " + processors[i].cpu + "\n" + (is_llvm ? emit_llvm(mine, processors[i], IrStage::kOptimized) : emit_assembly(mine, processors[i]));
  });
  std::string all;
  for (const std::string& text : texts) all += text;
  return all;
}

std::string compile_ptx(std::span<const Kernel* const> kernels, const EmitOptions& options) {
  HONE_CHECK(is_gpu(options), "PTX is for GPUs, not for " + options.cpu);
  return emit_assembly(kernels, options);
}

std::vector<std::vector<std::byte>> compile_shared_objects(std::span<const Kernel* const> kernels, std::span<const EmitOptions> targets) {
  struct Job {
    std::span<const Kernel* const> kernels;
    const EmitOptions* options;
    std::string* object;
    std::unique_ptr<Code> code = nullptr;
    std::size_t size = 0;  ///< instructions, as emitted
  };
  std::vector<std::vector<const Kernel*>> wanted_by;
  for (const EmitOptions& target : targets) wanted_by.push_back(wanted(kernels, target));
  std::vector<std::vector<std::string>> objects(targets.size());
  std::vector<Job> jobs;
  for (std::size_t target = 0; target < targets.size(); ++target) {
    const std::span<const Kernel* const> all = wanted_by[target];
    if (all.empty() and targets[target].only_for_matrices) continue;
    objects[target].resize(std::max<std::size_t>(1, (all.size() + kGroup - 1) / kGroup));
    for (std::size_t group = 0; group < objects[target].size(); ++group) {
      const std::size_t first = group * kGroup;
      jobs.push_back({all.subspan(first, std::min(kGroup, all.size() - first)), &targets[target], &objects[target][group]});
    }
  }
  on_all_cores(jobs.size(), [&](std::size_t i) {
    jobs[i].code = std::make_unique<Code>(jobs[i].kernels, *jobs[i].options);
    jobs[i].size = jobs[i].code->size();
  });
  const ObjectCache cache;
  std::ranges::stable_sort(jobs, std::greater<>(), &Job::size);  // a large one that comes last keeps the other cores waiting
  on_all_cores(jobs.size(), [&](std::size_t i) {
    Job& job = jobs[i];
    *job.object = job.code->made(llvm::CodeGenFileType::ObjectFile, cache);
    job.code.reset();
  });
  cache.prune();
  std::vector<std::vector<std::byte>> linked;
  for (const std::vector<std::string>& object : objects) linked.push_back(object.empty() ? std::vector<std::byte>() : link_shared_object(object));
  return linked;
}

std::vector<std::byte> compile_shared_object(std::span<const Kernel* const> kernels, const EmitOptions& options) {
  return std::move(compile_shared_objects(kernels, {&options, 1}).front());
}

}  // namespace hone
