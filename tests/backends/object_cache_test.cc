#include "backends/llvm/object_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "backends/llvm/emit.h"
#include "base/parallel.h"
#include "tests/backends/product_kernel.h"
#include "tests/support/environment.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::TempFolder;
using testing::IsEmpty;
using testing::SizeIs;

/// What `cache` gives for a source, and how often it had to be made.
struct Maker {
  const ObjectCache& cache;
  int made = 0;
  std::string operator()(const std::string& source) {
    return cache.find_or_make(source, [&] {
      ++made;
      return "code of " + source;
    });
  }
};

TEST(ObjectCache, MakesEachCodeOnce) {
  const TempFolder folder;
  const ObjectCache cache(folder / "not/yet/there");
  Maker make{cache};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(make("a"), "code of a");
    EXPECT_EQ(make("b"), "code of b");
  }
  EXPECT_EQ(make.made, 2);
  const ObjectCache another(folder / "not/yet/there");
  Maker later{another};
  EXPECT_EQ(later("a"), "code of a");
  EXPECT_EQ(later.made, 0);
}

TEST(ObjectCache, KeepsNothingWithoutAFolder) {
  Maker make{ObjectCache("")};
  EXPECT_EQ(make("a"), "code of a");
  EXPECT_EQ(make("a"), "code of a");
  EXPECT_EQ(make.made, 2);
}

TEST(ObjectCache, MakesAgainWhatIsDamaged) {
  const TempFolder folder;
  const ObjectCache cache(folder.path());
  Maker make{cache};
  make("a");
  ASSERT_THAT(folder.names(), SizeIs(1));
  const std::string name = folder.names().front(), whole = folder.read(name);
  std::string flipped = whole;
  flipped.front() ^= 1;
  for (const std::string& damaged : {std::string(), whole.substr(0, 5), whole.substr(0, whole.size() - 1), flipped, whole + "x"}) {
    folder.write(name, damaged);
    const int before = make.made;
    EXPECT_EQ(make("a"), "code of a");
    EXPECT_EQ(make.made, before + 1) << damaged.size() << " bytes";
    EXPECT_EQ(folder.read(name), whole) << "mended";
  }
}

TEST(ObjectCache, WithoutAPlaceToWriteAllIsMade) {
  const TempFolder folder;
  const ObjectCache cache(folder.write("a_file", "") + "/folder");
  Maker make{cache};
  EXPECT_EQ(make("a"), "code of a");
  EXPECT_EQ(make("a"), "code of a");
  EXPECT_EQ(make.made, 2);
}

TEST(ObjectCache, AFolderThatIsAskedForMustBeThere) {
  const TempFolder folder;
  const std::string impossible = folder.write("a_file", "") + "/folder";
  const test::ScopedVariable asked(kKernelCacheVariable, impossible.c_str());
  test::expect_error(Code::kFileWrite, "a_file", [] { ObjectCache(); });
}

TEST(ObjectCache, IsForManyAtOnce) {
  const TempFolder folder;
  on_all_cores(8, [&](std::size_t) {
    for (int i = 0; i < 50; ++i) {
      const ObjectCache cache(folder.path());
      Maker make{cache};
      EXPECT_EQ(make(std::to_string(i % 7)), "code of " + std::to_string(i % 7));
      cache.prune();
    }
  });
}

TEST(ObjectCache, GivesTheCodeOfTheseKernelsForThisProcessor) {
  const TempFolder folder;
  const Kernel a = matmul(4, 5, 6, {}), b = matmul(4, 5, 7, {});
  const Kernel *const first[] = {&a}, *const second[] = {&b};
  const EmitOptions usual{}, wide{.cpu = "x86-64-v4"}, plain{.opt_level = 0}, gpu{.cpu = "sm_80"};
  const auto all = [&] {
    std::vector<std::vector<std::byte>> objects;
    for (const auto& kernels : {first, second})
      for (const EmitOptions* options : {&usual, &wide, &plain}) objects.push_back(compile_shared_object({kernels, 1}, *options));
    const std::string ptx = compile_ptx(first, gpu);
    objects.emplace_back(std::as_bytes(std::span(ptx)).begin(), std::as_bytes(std::span(ptx)).end());
    return objects;
  };
  std::vector<std::vector<std::byte>> made;
  {
    const test::ScopedVariable none(kKernelCacheVariable, "");
    made = all();
  }
  const test::ScopedVariable kept(kKernelCacheVariable, folder.path().c_str());
  EXPECT_THAT(folder.names(), IsEmpty());
  EXPECT_EQ(all(), made);
  const std::vector<std::string> names = folder.names();
  EXPECT_EQ(std::ranges::count_if(names, [](const std::string& name) { return name.starts_with("llvmcache-"); }), 7);
  EXPECT_EQ(all(), made);
  EXPECT_EQ(folder.names(), names);
}

}  // namespace
}  // namespace hone
