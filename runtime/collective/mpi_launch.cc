#include "runtime/collective/mpi_launch.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace hone {
namespace {

std::optional<int> number(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, problem] = std::from_chars(text, end, value);
  if (problem != std::errc() or stop != end or value < 0) return std::nullopt;
  return value;
}

/// How launchers say it. Each is used where both variables are there.
struct Launcher {
  const char* rank;
  const char* size;
};
constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},  // Open MPI's mpirun
    {"PMIX_RANK", "SLURM_NTASKS"},                     // srun --mpi=pmix
    {"PMI_RANK", "PMI_SIZE"},                          // srun --mpi=pmi2, and launchers of other MPIs
};

constexpr const char* kLocalRanks[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID"};

}  // namespace

std::optional<LaunchedRank> launched_rank() {
  for (const Launcher& launcher : kLaunchers) {
    const std::optional<int> rank = number(launcher.rank), size = number(launcher.size);
    if (rank and size and *rank < *size) return LaunchedRank{*rank, *size};
  }
  return std::nullopt;
}

int local_rank() {
  for (const char* const variable : kLocalRanks)
    if (const std::optional<int> rank = number(variable)) return *rank;
  return 0;
}

// A shell in a Slurm allocation has SLURM_NTASKS, too, so that alone says nothing; PMIX_RANK and PMI_RANK are set for processes that a launcher serves, and for no others.
bool started_by_mpi() { return launched_rank() or std::getenv("PMIX_RANK") != nullptr; }

}  // namespace hone
