"""Ranks and rendezvous from the environments of torchrun, of Slurm job steps, and of a plain shell."""

import pytest

from hatchery.errors import ConfigError
from hatchery.training.topology import SINGLE_PROCESS, Topology, first_host, is_resolvable, read_topology

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}
SLURM_STEP = {
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "2",
    "SLURM_PROCID": "5",
    # The job has more tasks and nodes than this step.
    "SLURM_NTASKS": "16",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_LOCALID": "1",
    "SLURM_NODELIST": "gpu[001-008]",
    "SLURM_STEP_NODELIST": "gpu[003-006]",
}


@pytest.mark.parametrize(
    "environment",
    [
        {"PATH": "/bin"},
        # A batch script without srun, and a step of one task, which needs no address.
        {"SLURM_JOB_ID": "4711", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"},
        {**SLURM_STEP, "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"},
        {"WORLD_SIZE": "4"},
    ],
    ids=["plain shell", "batch script", "one task", "number of processes without a rank"],
)
def test_what_starts_one_process_is_one_process(environment: dict[str, str]) -> None:
    assert read_topology(environment) == SINGLE_PROCESS


def test_torchrun_variables_are_taken_over_and_win_over_slurm() -> None:
    expected = Topology(rank=3, world_size=4, local_rank=1, address="10.0.0.1", port=29500)
    assert read_topology(TORCHRUN) == read_topology({**SLURM_STEP, **TORCHRUN}) == expected


def test_a_slurm_step_meets_at_its_first_node_on_a_port_of_its_own() -> None:
    topology = read_topology(SLURM_STEP)
    assert topology == Topology(
        rank=5, world_size=8, local_rank=1, address="gpu003", port=20_000 + 4 * 4711 % 10_000 + 2
    )
    assert read_topology({**SLURM_STEP, "SLURM_STEP_ID": "3"}).port != topology.port
    assert read_topology({**SLURM_STEP, "SLURM_JOB_ID": "4712"}).port != topology.port


def test_without_the_variables_of_the_step_those_of_the_job_are_read() -> None:
    step = {
        key: value for key, value in SLURM_STEP.items() if key not in ("SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST")
    }
    topology = read_topology(step)
    assert (topology.world_size, topology.address) == (16, "gpu001")


@pytest.mark.parametrize(("resolves", "address"), [(True, "gpu003"), (False, "10.1.0.3")])
def test_where_the_name_of_the_first_node_has_no_address_that_of_srun_takes_its_place(
    resolves: bool, address: str
) -> None:
    step = {**SLURM_STEP, "SLURM_LAUNCH_NODE_IPADDR": "10.1.0.3"}
    assert read_topology(step, resolves=lambda host: resolves).address == address


def test_a_name_that_nobody_knows_is_not_resolvable() -> None:
    assert is_resolvable("127.0.0.1")
    assert not is_resolvable("nobody.invalid")
    assert not is_resolvable("." * 70)


@pytest.mark.parametrize(
    ("nodes", "host"),
    [
        ("gpu7", "gpu7"),
        ("gpu[007-012,20],login1", "gpu007"),
        ("login1,gpu[1-2]", "login1"),
        ("nid[001,005]-hsn", "nid001-hsn"),
    ],
)
def test_the_first_host_of_a_node_list_is_found(nodes: str, host: str) -> None:
    assert first_host(nodes) == host


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"RANK": "four"}, "RANK is 'four'"),
        ({"RANK": "4"}, "got rank 4 with 4 processes"),
        ({"MASTER_ADDR": ""}, "MASTER_ADDR is not set"),
    ],
)
def test_broken_environments_are_told_by_variable(change: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_topology({**TORCHRUN, **change})


def test_malformed_node_lists_are_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        first_host("[1-2]")
