"""Which rank of how many this process is, by what launchers set.

torchrun, Open MPI, MPICH and srun each name the rank and the number of ranks in the environment. An indexed
job of Kubernetes names the first alone, and a process that a program starts itself (`mp.spawn`, Fabric)
neither.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple

from factory.errors import ConfigurationError


class LaunchedRank(NamedTuple):
    """Rank `rank` of `ranks`."""

    rank: int
    ranks: int


ALONE = LaunchedRank(0, 1)

_TORCHRUN = ("RANK", "WORLD_SIZE")
_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # Open MPI
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI, srun --mpi=pmi2
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),  # MVAPICH2
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # srun
)
_RANK_ALONE = ("PMIX_RANK", "JOB_COMPLETION_INDEX")  # PRRTE, an indexed job of Kubernetes
_GIVE = "or give `rank` and `ranks`"


def launched_rank(environment: Mapping[str, str] = os.environ) -> LaunchedRank:
    """The rank of this process: of `torch.distributed` once it is initialized, else of the launcher.

    Without either it is 0 of 1. Raises ConfigurationError where a launcher has started several processes and
    does not say which one this is.
    """
    return distributed_rank() or _environment_rank(environment)


def distributed_rank() -> LaunchedRank | None:
    """The rank in `torch.distributed`; None before it is initialized."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return None
    return LaunchedRank(torch.distributed.get_rank(), torch.distributed.get_world_size())


def require_rank(launch: LaunchedRank) -> None:
    """Raise ConfigurationError if `torch.distributed` has become another rank than `launch`."""
    rank = distributed_rank()
    if rank is not None and rank != launch:
        raise ConfigurationError(
            f"This dataset was made as rank {launch.rank} of {launch.ranks}, and `torch.distributed` is "
            f"rank {rank.rank} of {rank.ranks} by now. Make it after `init_process_group`, {_GIVE}."
        )


def _environment_rank(environment: Mapping[str, str]) -> LaunchedRank:
    if any(name in environment for name in _TORCHRUN):
        return _named(environment, *_TORCHRUN, "Start through torchrun, which sets both,")
    for rank, ranks in _LAUNCHERS:
        if rank in environment and ranks in environment:
            return _named(environment, rank, ranks, "Start through the launcher that sets both,")
    if "SLURM_PROCID" in environment:
        return _without_step(environment)
    for name in _RANK_ALONE:
        if name in environment:
            raise ConfigurationError(
                f"The environment has {name} {environment[name]}, which does not say of how many. Set RANK "
                f"and WORLD_SIZE in the job, {_GIVE}."
            )
    return ALONE


def _named(environment: Mapping[str, str], rank_name: str, ranks_name: str, remedy: str) -> LaunchedRank:
    rank, ranks = environment.get(rank_name, ""), environment.get(ranks_name, "")
    if rank.isdecimal() and ranks.isdecimal() and int(rank) < int(ranks):
        return LaunchedRank(int(rank), int(ranks))
    said = " and ".join(f"{name} {environment.get(name, 'unset')}" for name in (rank_name, ranks_name))
    raise ConfigurationError(f"The environment has {said}, which is no rank of a run. {remedy} {_GIVE}.")


def _without_step(environment: Mapping[str, str]) -> LaunchedRank:
    """The rank in a Slurm job where no step says its size: an old srun, or the batch script itself."""
    rank, tasks = environment["SLURM_PROCID"], environment.get("SLURM_NTASKS", "1")
    if (rank, tasks) == ("0", "1"):
        return ALONE
    if rank == "0":
        raise ConfigurationError(
            f"This process belongs to a Slurm job of {tasks} tasks, and srun did not start it, so that it "
            f"may be the only one. Start it by srun, {_GIVE}: `rank=0, ranks=1` reads whole steps."
        )
    return _named(environment, "SLURM_PROCID", "SLURM_NTASKS", "Start through srun, which sets both,")
