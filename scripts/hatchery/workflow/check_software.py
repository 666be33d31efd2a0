"""The software that jobs run in: conda or containers where the profile asks for them, else the submitting environment.

Where Snakemake keeps a conda environment is Snakemake's own layout: `<folder>/<hash>_`, beside it the definition
`<hash>_.yaml` that it was made from and, once it is complete, `<hash>_.env_setup_done`.
"""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from hatchery.workflow import findings
from hatchery.workflow.findings import Finding
from hatchery.workflow.planned_jobs import ClusterPlan
from hatchery.workflow.software import has_conda

Which = Callable[[str], str | None]


def check_software(plan: ClusterPlan, target: str, which: Which = shutil.which) -> list[Finding]:
    """Whether every job will find its programs."""
    found = []
    deployment = plan.deployment
    if "apptainer" not in deployment and not has_conda(which):
        # As Snakemake's call decides, too.
        deployment = deployment - {"conda"}
    if "conda" in deployment and plan.conda_prefix is not None:
        found += check_conda(plan.environments, plan.conda_prefix, target, which)
    if "apptainer" in deployment and which("apptainer") is None and which("singularity") is None:
        found.append(
            findings.error(
                "containers", "neither apptainer nor singularity is on PATH", "load the cluster's module first"
            )
        )
    # No rule names modules, so this method stands for "none".
    if not deployment - {"env-modules"}:
        python = which("python")
        seen = f"jobs run in the environment of this shell ({python})" if python else "there is no `python` on PATH"
        advice = "put the environment's bin folder first on PATH, on a file system that the nodes see"
        found.append(findings.ok("software", seen) if python else findings.error("software", seen, advice))
    return found


def check_conda(environments: Iterable[Path], prefix: Path, target: str, which: Which = shutil.which) -> list[Finding]:
    """Whether conda is here and the environments are made already, so that no node needs the network."""
    if not has_conda(which):
        return [
            findings.error(
                "conda",
                "the profile asks for containers with conda (software-deployment-method), which is not on PATH",
                "load or install conda",
            )
        ]
    missing = sorted(path.name for path in environments if made_environment(path, prefix) is None)
    if missing:
        return [
            findings.warning(
                "conda",
                f"not made yet in {prefix}: {', '.join(missing)}",
                f"on a machine with network: snakemake --profile slurm --conda-create-envs-only {target}",
            )
        ]
    return [findings.ok("conda", f"all environments are made in {prefix}")]


def made_environment(definition: Path, prefix: Path) -> Path | None:
    """Folder of the finished conda environment that was made from exactly this definition; None where there is none."""
    wanted = definition.read_bytes()
    for copy in sorted(prefix.glob("*.yaml")):
        if copy.with_suffix(".env_setup_done").exists() and copy.read_bytes() == wanted:
            return copy.with_suffix("")
    return None
