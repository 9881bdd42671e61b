#include "runtime/device/drivers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/diag.h"
#include "base/other_names.h"
#include "base/text.h"
#include "runtime/collective/mpi_launch.h"
#include "runtime/device/cuda_device.h"
#include "runtime/device/sim_device.h"

namespace hone {
namespace {

constexpr int kSimDevices = 8;

std::vector<SeenDevice> list_sim(std::string*) { return std::vector<SeenDevice>(kSimDevices, {.description = "a GPU played by the host, for tests of programs for GPUs"}); }
std::unique_ptr<Device> open_sim(int number) {
  const char* options = std::getenv("HONE_SIM");
  return std::make_unique<SimDevice>(sim_options(options == nullptr ? "" : options, number));
}

std::vector<SeenDevice> list_cuda(std::string* why_none) {
  std::vector<SeenDevice> devices;
  for (const cuda::Gpu& gpu : cuda::gpus(why_none)) devices.push_back({.description = fmt::format("{}, sm_{}{}, {}", gpu.name, gpu.major, gpu.minor, human_bytes(gpu.memory)), .why_not = gpu.why_not});
  return devices;
}

std::unique_ptr<Device> open_cuda(int number) {
  std::string why;
  const cuda::Library* library = cuda::library(&why);
  if (library == nullptr) throw Error(Code::kDevice, fmt::format("cuda:{} cannot be used: {}", number, why), {}, {"use --device cpu"});
  const char* options = std::getenv("HONE_CUDA");
  return std::make_unique<CudaDevice>(*library, number, cuda_options(options == nullptr ? "" : options));
}

constexpr Driver kDrivers[] = {
    {.name = "cuda", .list = list_cuda, .open = open_cuda, .preferred = true},
    {.name = "sim", .list = list_sim, .open = open_sim},
};

/// The number behind the colon.
int number_in(std::string_view device, std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() and end == text.data() + text.size() and number >= 0) return number;
  throw Error(Code::kDevice, fmt::format("device {}: {} is no number of a device", quoted(device), quoted(text)), {}, {"write for example cuda:0"});
}

Error cannot_be_used(std::string_view device, const std::string& why) {
  return Error(Code::kDevice, fmt::format("device {} cannot be used: {}", quoted(device), why), {}, {"hone-run devices says what is here", "or use --device cpu"});
}

std::vector<int> usable_among(const std::vector<SeenDevice>& seen) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (seen[i].why_not.empty()) numbers.push_back(static_cast<int>(i));
  return numbers;
}

/// Of the processes on this machine the first takes the first, and so on, in turns.
int own_one(const std::vector<int>& usable) { return usable[static_cast<std::size_t>(local_rank()) % usable.size()]; }

/// The one that `device` names, or where it names none, this process's own of those that can be used.
int number_of(const Driver& driver, std::string_view device, const std::vector<SeenDevice>& seen) {
  const std::size_t colon = device.find(':');
  if (colon == std::string_view::npos) {
    const std::vector<int> usable = usable_among(seen);
    if (usable.empty()) throw cannot_be_used(device, seen.front().why_not);
    return own_one(usable);
  }
  const int number = number_in(device, device.substr(colon + 1));
  if (static_cast<std::size_t>(number) >= seen.size())
    throw Error(Code::kDevice, fmt::format("there is no device {}: of {} there {} {}", quoted(device), driver.name, seen.size() == 1 ? "is" : "are", seen.size()), {}, {"numbers begin with 0; hone-run devices lists them"});
  if (const std::string& why_not = seen[static_cast<std::size_t>(number)].why_not; not why_not.empty()) throw cannot_be_used(device, why_not);
  return number;
}

bool contains(const std::vector<std::string>& names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

}  // namespace

std::span<const Driver> all_drivers() { return kDrivers; }

std::vector<int> usable_devices(const Driver& driver) { return usable_among(driver.list(nullptr)); }

std::vector<std::string> devices_in(std::string_view list) {
  const std::size_t colon = list.find(':');
  if (colon == std::string_view::npos) return {std::string(list)};
  std::vector<std::string> devices;
  for (const std::string& number : split(list.substr(colon + 1), ',')) {
    std::string device = fmt::format("{}:{}", list.substr(0, colon), number);
    if (contains(devices, device)) throw Error(Code::kUsage, fmt::format("--device {}: {} is named twice", quoted(list), quoted(device)), {}, {"--virtual 2 makes two logical devices of each"});
    devices.push_back(std::move(device));
  }
  return devices;
}

std::optional<ChosenDevice> choose_device(std::string_view device, const std::vector<std::string>& targets_of_plan, std::span<const Driver> drivers) {
  if (device == "cpu") return std::nullopt;
  if (device == "auto") {
    const bool has_cpu = contains(targets_of_plan, "cpu");
    for (const Driver& driver : drivers) {
      if (not(driver.preferred or not has_cpu) or not contains(targets_of_plan, driver.name)) continue;
      if (const std::vector<int> usable = usable_devices(driver); not usable.empty()) return ChosenDevice{&driver, own_one(usable)};
    }
    return std::nullopt;
  }
  const std::size_t colon = device.find(':');
  const std::string_view name = device.substr(0, colon);
  std::vector<std::string> names = {"auto", "cpu"};
  for (const Driver& driver : drivers) {
    names.emplace_back(driver.name);
    if (driver.name != name) continue;
    std::string why_none;
    const std::vector<SeenDevice> seen = driver.list(&why_none);
    if (seen.empty()) throw cannot_be_used(device, why_none);
    return ChosenDevice{&driver, number_of(driver, device, seen)};
  }
  if (name == "cpu") throw Error(Code::kDevice, fmt::format("device {}: the cpu has no numbers", quoted(device)), {}, {"use --device cpu"});
  const std::string other = hint_for_other_name("--device", name);
  throw Error(Code::kDevice, fmt::format("there is no device {}", quoted(device)), {}, {other.empty() ? did_you_mean(name, names) : other, "hone-run devices lists them"});
}

}  // namespace hone
