"""The profiles can be named as the documentation names them, and on one machine no GPU is given out twice."""

import itertools
import json
import sys
from pathlib import Path

import forked
import pytest
import yaml

WORKFLOW = """
rule all:
    default_target: True
    input:
        expand("{i}.json", i=range(4)),
        "large.json",

rule small:
    output: "{i}.json"
    resources: gpu_slots=1
    shell: "python scripts/claim_gpus.py --gpus 1 --locks locks -- python note.py {output}"

rule large:
    output: "large.json"
    resources: gpu_slots=2
    shell: "python scripts/claim_gpus.py --gpus {resources.gpu_slots} --locks locks -- python note.py {output}"
"""
NOTE = """
import json, os, pathlib, sys, time
gpus, start = os.environ["CUDA_VISIBLE_DEVICES"].split(","), time.monotonic()
time.sleep(0.3)
pathlib.Path(sys.argv[1]).write_text(json.dumps([gpus, start, time.monotonic()]))
"""


@pytest.mark.parametrize("profile", ["slurm", "gpus"])
def test_a_profile_is_found_by_its_name_from_the_top_of_the_checkout(profile, repository):
    settings = yaml.safe_load((repository / profile / "config.yaml").read_text(encoding="utf-8"))
    assert settings["executor"] == {"slurm": "slurm", "gpus": "local"}[profile]
    assert settings["scheduler"] == "greedy" and settings["rerun-incomplete"] and settings["keep-going"]
    # What a rule directive says would be tried several times inside one job of Slurm.
    assert settings["retries"] >= 1


def test_the_default_profile_leaves_the_resources_of_the_others_alone(repository):
    default = yaml.safe_load((repository / "profiles/default/config.yaml").read_text(encoding="utf-8"))
    assert not {"default-resources", "resources", "executor", "jobs", "retries"} & default.keys()


def test_jobs_of_one_machine_share_no_gpu_under_the_profile(repository, tmp_path, monkeypatch):
    for name, target in (("gpus", "workflow/profiles/gpus"), ("scripts", "scripts")):
        (tmp_path / name).symlink_to((repository / target).resolve())
    (tmp_path / "Snakefile").write_text(WORKFLOW, encoding="utf-8")
    (tmp_path / "note.py").write_text(NOTE, encoding="utf-8")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    run = forked.run(
        [sys.executable, "-m", "snakemake", "--profile", "gpus", "--cores", "5", "--resources", "gpu_slots=2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    # Nobody had to wait for a lock: Snakemake itself counted.
    assert "waiting for" not in run.stdout + run.stderr
    jobs = [json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.glob("*.json")]
    assert max(len(gpus) for gpus, _, _ in jobs) == 2
    for gpu in ("4", "7"):
        times = sorted((start, end) for gpus, start, end in jobs if gpu in gpus)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(times))
    assert {gpu for gpus, _, _ in jobs for gpu in gpus} == {"4", "7"}
