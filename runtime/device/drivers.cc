#include "runtime/device/drivers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/diag.h"
#include "base/other_names.h"
#include "base/text.h"
#include "runtime/device/cuda_device.h"
#include "runtime/device/sim_device.h"

namespace hone {
namespace {

constexpr int kSimDevices = 8;

std::vector<std::string> list_sim(std::string*) { return std::vector<std::string>(kSimDevices, "a GPU played by the host, for tests of programs for GPUs"); }
std::unique_ptr<Device> open_sim(int number) {
  const char* options = std::getenv("HONE_SIM");
  return std::make_unique<SimDevice>(sim_options(options == nullptr ? "" : options, number));
}

std::vector<std::string> list_cuda(std::string* why_none) {
  std::vector<std::string> lines;
  for (const cuda::Gpu& gpu : cuda::gpus(why_none)) lines.push_back(fmt::format("{}, sm_{}{}, {}", gpu.name, gpu.major, gpu.minor, human_bytes(gpu.memory)));
  return lines;
}

std::unique_ptr<Device> open_cuda(int number) {
  std::string why;
  const cuda::Library* library = cuda::library(&why);
  if (library == nullptr) throw Error(Code::kDevice, fmt::format("cuda:{} cannot be used: {}", number, why), {}, {"use --device cpu"});
  const char* options = std::getenv("HONE_CUDA");
  const bool leaves_out = options != nullptr and std::string_view(options) == "libraries=0";
  if (options != nullptr and *options != '\0' and not leaves_out) throw Error(Code::kUsage, fmt::format("HONE_CUDA is {}", quoted(options)), {}, {"it takes libraries=0, which leaves cuBLASLt and cuDNN out"});
  return std::make_unique<CudaDevice>(*library, number, leaves_out ? CudaDevice::Libraries::kLeftOut : CudaDevice::Libraries::kUsed);
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

bool contains(const std::vector<std::string>& names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

}  // namespace

std::span<const Driver> all_drivers() { return kDrivers; }

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

std::optional<ChosenDevice> choose_device(std::string_view device, const std::vector<std::string>& targets_of_plan) {
  if (device == "cpu") return std::nullopt;
  if (device == "auto") {
    const bool has_cpu = contains(targets_of_plan, "cpu");
    for (const Driver& driver : kDrivers)
      if ((driver.preferred or not has_cpu) and contains(targets_of_plan, driver.name) and not driver.list(nullptr).empty()) return ChosenDevice{&driver, 0};
    return std::nullopt;
  }
  const std::size_t colon = device.find(':');
  const std::string_view name = device.substr(0, colon);
  std::vector<std::string> names = {"auto", "cpu"};
  for (const Driver& driver : kDrivers) {
    names.emplace_back(driver.name);
    if (driver.name != name) continue;
    const int number = colon == std::string_view::npos ? 0 : number_in(device, device.substr(colon + 1));
    std::string why_none;
    const std::size_t count = driver.list(&why_none).size();
    if (count == 0) throw Error(Code::kDevice, fmt::format("device {} cannot be used: {}", quoted(device), why_none), {}, {"hone-run devices says what is here", "or use --device cpu"});
    if (static_cast<std::size_t>(number) >= count)
      throw Error(Code::kDevice, fmt::format("there is no device {}: of {} there {} {}", quoted(device), name, count == 1 ? "is" : "are", count), {}, {"numbers begin with 0; hone-run devices lists them"});
    return ChosenDevice{&driver, number};
  }
  if (name == "cpu") throw Error(Code::kDevice, fmt::format("device {}: the cpu has no numbers", quoted(device)), {}, {"use --device cpu"});
  const std::string other = hint_for_other_name("--device", name);
  throw Error(Code::kDevice, fmt::format("there is no device {}", quoted(device)), {}, {other.empty() ? did_you_mean(name, names) : other, "hone-run devices lists them"});
}

}  // namespace hone
