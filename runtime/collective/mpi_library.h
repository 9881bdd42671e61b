// Open MPI as it is found when running. Only its header is needed to build, and a program that uses this starts where there is no MPI. Only for runtime/collective/mpi_*.cc.
#pragma once

#define OMPI_SKIP_MPICXX  // its C++ classes would need the library for linking
#include <mpi.h>

#include <string>

#ifndef OPEN_MPI
#error "mpi.h is not Open MPI's; build with -DHONE_MPI=OFF"
#endif

namespace hone {

/// MPI's functions under their own names. Never MPI_COMM_WORLD and other macros of mpi.h that name objects in the library: they would need it for linking.
struct MpiLibrary {
#define HONE_MPI_FUNCTIONS(X)                                                                                                                              \
  X(Init_thread) X(Finalize) X(Comm_rank) X(Comm_size) X(Comm_idup) X(Comm_set_errhandler) X(Error_string) X(Isend) X(Irecv) X(Recv) X(Iprobe) X(Test) X(Testsome) \
  X(Get_count) X(Get_library_version)
#define HONE_MPI_MEMBER(name) decltype(&MPI_##name) name;
  HONE_MPI_FUNCTIONS(HONE_MPI_MEMBER)
#undef HONE_MPI_MEMBER

  MPI_Comm world;
  MPI_Datatype byte;
  MPI_Errhandler errors_return;

  std::string text_of(int error) const;
};

/// Loaded with the first call; from then on always the same. Throws kDevice where it cannot be loaded.
const MpiLibrary& mpi_library();

}  // namespace hone
