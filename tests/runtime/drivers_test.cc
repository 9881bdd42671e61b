// Which device is taken, of those that are there and those of them that can be used; and which GPUs can.
#include "runtime/device/drivers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "base/diag.h"
#include "runtime/device/cuda_library.h"
#include "runtime/device/devices.h"
#include "tests/support/environment.h"

namespace hone {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<SeenDevice> list_mixed(std::string*) { return {{"an old one", "it is too old"}, {"a good one"}, {"a broken one", "it does not answer"}, {"another good one"}}; }
std::vector<SeenDevice> list_old(std::string*) { return {{"an old one", "it is too old"}}; }
std::vector<SeenDevice> list_none(std::string* why) {
  if (why != nullptr) *why = "there is no driver";
  return {};
}

constexpr Driver kMixed[] = {{.name = "gpu", .list = list_mixed, .open = nullptr, .preferred = true}};
constexpr Driver kOld[] = {{.name = "gpu", .list = list_old, .open = nullptr, .preferred = true}};
constexpr Driver kNone[] = {{.name = "gpu", .list = list_none, .open = nullptr, .preferred = true}};

/// The number; -1 for the cpu.
int number_taken(std::string_view device, std::span<const Driver> drivers) {
  const auto taken = choose_device(device, {"cpu", "gpu"}, drivers);
  return taken ? taken->number : -1;
}

std::string refusal_of(std::string_view device, std::span<const Driver> drivers) {
  try {
    (void)choose_device(device, {"cpu", "gpu"}, drivers);
  } catch (const Error& error) {
    EXPECT_EQ(error.diags().front().code, Code::kDevice);
    return error.what();
  }
  ADD_FAILURE() << device << " was not refused";
  return "";
}

TEST(Drivers, TheFirstThatCanBeUsedIsTaken) {
  EXPECT_EQ(number_taken("auto", kMixed), 1);
  EXPECT_EQ(number_taken("gpu", kMixed), 1);
  EXPECT_EQ(number_taken("gpu:3", kMixed), 3);
  EXPECT_EQ(number_taken("cpu", kMixed), -1);
}

/// As launchers tell each process of a machine its number.
TEST(Drivers, ProcessesThatWereStartedTogetherTakeTurns) {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID"}) {
    std::vector<int> taken;
    for (const char* rank : {"0", "1", "2", "x"}) {
      const test::ScopedVariable started_as(variable, rank);
      taken.push_back(number_taken("gpu", kMixed));
      EXPECT_EQ(number_taken("auto", kMixed), taken.back());
      EXPECT_EQ(number_taken("gpu:1", kMixed), 1) << "the one that is named";
    }
    EXPECT_THAT(taken, ElementsAre(1, 3, 1, 1)) << variable;
  }
}

TEST(Drivers, WhereNoneCanBeUsedThereIsTheCpu) {
  EXPECT_EQ(number_taken("auto", kOld), -1);
  EXPECT_EQ(number_taken("auto", kNone), -1);
}

TEST(Drivers, WhatCannotBeUsedIsRefusedWithTheReason) {
  EXPECT_THAT(refusal_of("gpu:2", kMixed), AllOf(HasSubstr("\"gpu:2\""), HasSubstr("it does not answer"), HasSubstr("hone-run devices")));
  EXPECT_THAT(refusal_of("gpu", kOld), AllOf(HasSubstr("it is too old"), HasSubstr("--device cpu")));
  EXPECT_THAT(refusal_of("gpu", kNone), HasSubstr("there is no driver"));
  EXPECT_THAT(refusal_of("gpu:4", kMixed), HasSubstr("there are 4"));
}

TEST(Drivers, ListSaysWhichCanBeUsed) {
  const std::vector<DeviceInfo> mixed = list_devices(kMixed), old = list_devices(kOld);
  ASSERT_EQ(mixed.size(), 5U);
  EXPECT_EQ(mixed[0].name, "gpu:0");
  EXPECT_FALSE(mixed[0].usable);
  EXPECT_EQ(mixed[0].reason, "it is too old");
  EXPECT_TRUE(mixed[1].usable);
  EXPECT_EQ(mixed[4].name, "cpu");
  ASSERT_EQ(old.size(), 2U);
  EXPECT_EQ(old[0].name, "cpu") << "the preferred one that can be used";
  EXPECT_FALSE(old[1].usable);
}

/// Five GPUs: one that does not answer, one of each age, and one that nobody may use.
TEST(Drivers, GpusAreUsableFromSm80OnIfTheyAnswer) {
  cuda::Library f;
  f.error_name = [](cuda::Result, const char** name) { return *name = "CUDA_ERROR_INVALID_DEVICE", 0; };
  f.error_string = [](cuda::Result, const char** text) { return *text = "words", 0; };
  f.device_count = [](int* count) { return *count = 5, 0; };
  f.device_get = [](cuda::DeviceNumber* device, int ordinal) { return *device = ordinal, ordinal == 0 ? 101 : 0; };
  f.device_name = [](char* name, int, cuda::DeviceNumber) { return std::strcpy(name, "G"), 0; };
  f.device_memory = [](std::size_t* bytes, cuda::DeviceNumber) { return *bytes = 1 << 20, 0; };
  f.device_attribute = [](int* value, int attribute, cuda::DeviceNumber device) {
    constexpr int kMajors[] = {0, 7, 8, 12, 9}, kMinors[] = {0, 5, 0, 1, 0};
    *value = attribute == cuda::kComputeMajor ? kMajors[device] : attribute == cuda::kComputeMinor ? kMinors[device] : device == 4 ? cuda::kProhibited : 0;
    return 0;
  };
  std::vector<std::string> why;
  for (const cuda::Gpu& gpu : cuda::gpus(f, nullptr)) why.push_back(gpu.why_not);
  EXPECT_THAT(why, ElementsAre(AllOf(HasSubstr("does not answer"), HasSubstr("CUDA_ERROR_INVALID_DEVICE")), AllOf(HasSubstr("sm_80 and later"), HasSubstr("sm_75")), "", "", HasSubstr("compute mode")));
}

}  // namespace
}  // namespace hone
