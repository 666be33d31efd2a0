"""A project with results as the stages write them: two models, from raw files to a summary."""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forked
import pytest
from summary_text import write_summary

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.checksums import sha256_file
from hatchery.artifacts.manifests import stage_run
from hatchery.raw.registration import register_source


@dataclass
class Toy:
    """Writes stages below `folder`."""

    folder: Path

    def stage(self, place: str, settings: Mapping[str, Any], inputs: Mapping[str, Path], text: str = "made") -> Path:
        output = self.folder / "results" / place / "manifest.json"
        # Run within the project with relative paths, as the workflow does.
        read = {name: path.relative_to(self.folder) for name, path in inputs.items()}
        with contextlib.chdir(self.folder), stage_run(output, settings, read) as run:
            write_text(output.parent / "data.txt", f"{text} {place}")
            run.add_output(output.parent / "data.txt")
            run.measures["lines"] = 1
        return output

    @property
    def source(self) -> Path:
        return self.folder / "resources/sources/toy.json"

    @property
    def summary(self) -> Path:
        return self.folder / "results/exp/summary.csv"

    def manifest(self, place: str) -> Path:
        return self.folder / "results" / place / "manifest.json"

    def write_summary(self) -> None:
        """Write two models on one task and a second metric of ltg_bert, with digests of the pairs' manifests."""
        lines = []
        for model, mean in (("elc_bert", "53.0000"), ("ltg_bert", "64.0000")):
            digest = sha256_file(self.manifest(f"exp/minimal_pairs/{model}-s1/pairs"))[:12]
            lines.append(f"exp,{model},pairs,binding,accuracy_percent,{mean},,1,0,,0,,,,,,{digest},,")
        digests = sorted(line.split(",")[-3] for line in lines)
        lines.append(
            "exp,ltg_bert,pairs,binding,f1_percent,60.0000,1.5000,2,1,61.5000,0,"
            f"61.0,,Paper Table 1,,within,{';'.join(digests)},,"
        )
        write_summary(self.summary.parent, lines)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    project = Toy(tmp_path_factory.mktemp("provenance") / "project")
    raw = Path("data/raw")
    for number in range(7):
        write_text(project.folder / raw / f"text{number}.txt", f"raw text {number}\n")
    # Register within the project, as the workflow does, so that the location is relative to it.
    with contextlib.chdir(project.folder):
        origin = {"url": "a page", "year": 2020}
        place = "resources/sources/toy.json"
        register_source("toy", raw, place, licence="CC BY", terms="with attribution", origin=origin)
    corpus = {"stage": "convert_corpus", "stage_version": 2, "sources": [{"name": "toy", "reader": "plain_text"}]}
    made = project.stage("corpora/toy", corpus, {"toy": project.source})
    tokens = project.stage("tokens/toy/toy", {"stage": "encode_corpus", "stage_version": 1}, {"corpus": made})
    for model, weighting in (("elc_bert", "zero"), ("ltg_bert", "none")):
        pretraining = {
            "stage": "pretrain",
            "stage_version": 1,
            "seed": 1,
            "long_sequence": None,
            "model": {"hidden_size": 384, "layer_weighting": weighting},
        }
        trained = project.stage(f"exp/pretraining/{model}-s1", pretraining, {"tokens": tokens})
        pairs = {"stage": "score_minimal_pairs", "stage_version": 2, "suite": "pairs"}
        project.stage(f"exp/minimal_pairs/{model}-s1/pairs", pairs, {"model": trained, "source": project.source})
    project.write_summary()
    return project


@pytest.fixture
def toy(built: Toy, tmp_path: Path) -> Toy:
    """A copy of the project that the test may damage."""
    return Toy(Path(shutil.copytree(built.folder, tmp_path / "project")))


@pytest.fixture
def trace(toy: Any, repository: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `trace.py` on the summary of `toy`."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(repository / "scripts/trace.py"), "results/exp/summary.csv", *arguments]
        return forked.run(command, cwd=toy.folder, capture_output=True, text=True, check=False)

    return run
