// What the environment says about a launch by mpirun or srun, before MPI is started. Needs no MPI.
#pragma once

#include <optional>

namespace hone {

/// The process has come with others that wait for it in MPI_Init: mpirun, or Slurm's srun with --mpi=pmix or pmi2. A job's lone process counts, too. False for a plain start, also
/// within a Slurm allocation (salloc, sbatch).
bool started_by_mpi();

/// The process's rank and how many there are, as far as the environment says so. For names of files and lines of logs; what counts is what MPI says.
struct LaunchedRank {
  int rank = 0;
  int size = 1;
};
std::optional<LaunchedRank> launched_rank();

/// Which of those that were started together on this machine the process is, from 0; 0 as well where it has come alone.
int local_rank();

}  // namespace hone
