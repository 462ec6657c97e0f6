"""The rank that a process has by its launcher, and the rank that it turns out to have."""

from __future__ import annotations

import pytest

from blender.trainer.launch import ALONE, LaunchedRank, launched_rank
from factory.errors import ConfigurationError


@pytest.mark.parametrize(
    "environment",
    [
        {"RANK": "3", "WORLD_SIZE": "4"},
        {
            "RANK": "3",
            "WORLD_SIZE": "4",
            "SLURM_PROCID": "0",
            "SLURM_STEP_NUM_TASKS": "2",
        },  # torchrun by srun
        {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"},
        {"PMI_RANK": "3", "PMI_SIZE": "4", "SLURM_PROCID": "3", "SLURM_NTASKS": "4"},
        {"MV2_COMM_WORLD_RANK": "3", "MV2_COMM_WORLD_SIZE": "4"},
        {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS": "8"},
        {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "3"},
    ],
)
def test_each_launcher_names_the_rank(environment: dict[str, str]) -> None:
    assert launched_rank(environment) == LaunchedRank(3, 4)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"},  # the batch script of a job of one task
        {"SLURM_PROCID": "0"},
        {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "8"},  # srun --ntasks 1
    ],
)
def test_a_process_that_is_alone_is_rank_0_of_1(environment: dict[str, str]) -> None:
    assert launched_rank(environment) == ALONE


@pytest.mark.parametrize(
    "environment, sentence",
    [
        ({"RANK": "3"}, "has RANK 3 and WORLD_SIZE unset, which is no rank of a run. Start through torchrun"),
        ({"WORLD_SIZE": "2"}, "has RANK unset and WORLD_SIZE 2"),
        ({"RANK": "4", "WORLD_SIZE": "4"}, "has RANK 4 and WORLD_SIZE 4"),
        ({"RANK": "", "WORLD_SIZE": "4"}, "has RANK  and WORLD_SIZE 4"),
        ({"PMI_RANK": "x", "PMI_SIZE": "4"}, "has PMI_RANK x and PMI_SIZE 4"),
        ({"JOB_COMPLETION_INDEX": "3"}, "has JOB_COMPLETION_INDEX 3, which does not say of how many. Set"),
        ({"PMIX_RANK": "3"}, "has PMIX_RANK 3, which does not say of how many"),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, "a Slurm job of 4 tasks, and srun did not start it"),
    ],
)
def test_a_rank_that_nobody_knows_is_refused(environment: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        launched_rank(environment)
