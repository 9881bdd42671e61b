// What stands for mpi_*.cc in a build without MPI's header.
#include "base/diag.h"
#include "runtime/collective/mpi_communicator.h"

namespace hone {

bool has_mpi() { return false; }
bool mpi_is_unfinished() { return false; }
void heard_by_mpi(int, const void*, std::size_t) noexcept {}
bool hidden_from_mpi(int, ssize_t, int) noexcept { return false; }
int exit_code_where_mpi_ends(int status) noexcept { return status; }

std::unique_ptr<MpiCommunicator> connect_with_mpi(const MpiOptions&) {
  throw Error(Code::kDevice, "this Hone was built without MPI, so it cannot train with several processes", {},
              {"build it where Open MPI's header is (Debian: apt-get install libopenmpi-dev), with -DHONE_MPI=ON", "replicas within one process need no MPI"});
}

}  // namespace hone
