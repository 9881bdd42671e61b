// Open MPI 4.1 ends a process in which a TCP connection breaks during a write: it tells mpirun to kill all the others (PMIx_Abort) and leaves by _exit, without a word of ranks. Its plug-ins find
// these two functions first: this process says which replica cannot be reached, and the others live to notice it themselves, as after any other failure.
#include <cstddef>
#include <cstdlib>

#include "runtime/collective/mpi_communicator.h"

extern "C" [[noreturn]] void _exit(int status) { std::_Exit(hone::exit_code_where_mpi_ends(status)); }

extern "C" [[noreturn]] int PMIx_Abort(int status, const char* /*message*/, void* /*processes*/, std::size_t /*count*/) { _exit(status); }
