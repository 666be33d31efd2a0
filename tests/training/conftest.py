"""Settings and inputs that several pretraining tests share."""

import json
import os
import random
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest
import torch
from direct_cases import MODEL, trained
from forked import Forked
from safetensors.torch import load_file
from stage_command import stage_command

from demo.parallel import parallel_files
from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.artifacts.parquet import ShardWriter
from hatchery.corpora.settings import ConvertSettings
from hatchery.corpora.stages.convert_corpus import convert_corpus
from hatchery.raw.registration import register_source
from hatchery.runner import Job, run_stage
from hatchery.tokenization.stages.encode_corpus import encode_corpus
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer
from hatchery.training.inputs import Inputs
from hatchery.training.processes import process_group
from hatchery.training.settings import pretrain_settings
from hatchery.training.topology import SINGLE_PROCESS
from hatchery.training.train_and_export import train_and_export
from hatchery.typed import build

SliceFactory = Callable[..., dict[str, Any]]


def _pretrain_slice(long: tuple[float, int] | None = None, **changes: Any) -> dict[str, Any]:
    """Settings of the stage, mostly defaults; keys with two underscores (`optimizer__name`) change nested values."""
    slice_: dict[str, Any] = {
        "stage": "pretrain",
        "stage_version": 1,
        "model": {
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "position_bucket_size": 8,
            "max_position_embeddings": 64,
            "hidden_dropout_prob": 0.1,
            "attention_probs_dropout_prob": 0.1,
            "layer_weighting": "biased",
        },
        "objective": {},
        "output_bias": {},
        "optimizer": {"name": "lamb"},
        "schedule": {"warmup_fraction": 0.1},
        "steps": 20,
        "sequence_length": 16,
        "batch_size": 8,
        "long_sequence": None if long is None else {"from_fraction": long[0], "factor": long[1]},
        "precision": "fp32",
        "evaluation_interval_steps": 10,
        "evaluation_sequences": 8,
        "seed": 42,
    }
    for key, value in changes.items():
        holder = slice_
        *path, last = key.split("__")
        for part in path:
            holder = holder[part]
        holder[last] = value
    return slice_


@pytest.fixture(scope="session")
def pretrain_slice() -> SliceFactory:
    """Make a slice of settings with changes."""
    return _pretrain_slice


@pytest.fixture(scope="session")
def runtime_slice() -> SliceFactory:
    """Make runtime settings with changes."""

    def make(**changes: Any) -> dict[str, Any]:
        return {
            "checkpoint_interval_steps": 5,
            "keep_checkpoints": 2,
            "micro_batch_size": None,
            "log_interval_steps": 10,
            "device": "cpu",
            "threads": 1,
            **changes,
        }

    return make


@pytest.fixture(scope="session")
def single_process() -> Iterator[None]:
    """Open a process group of one process, once per session because DeepSpeed keeps its groups until Python exits."""
    with process_group(SINGLE_PROCESS, torch.device("cpu")):
        yield


@pytest.fixture
def train(tmp_path: Path, single_process: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`hatchery.train` in this process, with small settings, into a folder of the test."""
    monkeypatch.setattr("hatchery.training.run.process_group", lambda *_: nullcontext())
    return lambda given=None, into="made", model=MODEL, **changes: trained(tmp_path / into, given, model, **changes)


@dataclass(frozen=True)
class TokenData:
    """Manifests of a small corpus, of its encoded text and of its tokenizer."""

    corpus: Path
    tokens: Path
    tokenizer: Path


@pytest.fixture(scope="session")
def token_data(tmp_path_factory: pytest.TempPathFactory) -> TokenData:
    """A generated corpus, tokenized and encoded by the real stages."""
    folder = tmp_path_factory.mktemp("token_data")
    corpus, tokenizer, tokens = (folder / name / "manifest.json" for name in ("corpus", "tokenizer", "tokens"))
    _write_corpus(corpus, {"train": 120, "dev": 20})
    run_stage(
        train_tokenizer,
        {
            "stage": "train_tokenizer",
            "stage_version": 1,
            "kind": "wordpiece",
            "vocabulary_size": 300,
            "min_frequency": 2,
            "special_tokens": "babylm",
            "sentences_limit": None,
        },
        tokenizer,
        corpus=[corpus],
    )
    run_stage(
        encode_corpus,
        {"stage": "encode_corpus", "stage_version": 1},
        tokens,
        corpus=corpus,
        tokenizer=tokenizer,
    )
    return TokenData(corpus, tokens, tokenizer)


@pytest.fixture(scope="session")
def pair_data(tmp_path_factory: pytest.TempPathFactory) -> TokenData:
    """Generated pairs, converted, tokenised and encoded by the real stages."""
    folder = tmp_path_factory.mktemp("pairs")
    for name, content in parallel_files(200, seed=0):
        (folder / "raw" / name).parent.mkdir(exist_ok=True)
        (folder / "raw" / name).write_bytes(content)
    register_source("pairs", folder / "raw", folder / "pairs.json")
    named = {split: [f"{split}.tv", f"{split}.en"] for split in ("train", "dev")}
    settings = {"sources": [{"name": "pairs", "reader": "parallel_text", "options": {"files": named}}]}
    corpus, tokenizer, tokens = (folder / name / "manifest.json" for name in ("corpus", "tokenizer", "tokens"))
    with stage_run(corpus, {"stage": "convert_corpus", **settings}) as run:
        convert_corpus(build(ConvertSettings, settings), {"pairs": folder / "pairs.json"}, run, workers=1)
    joint = {"kind": "bpe", "vocabulary_size": 160, "special_tokens": "roberta", "pre_tokenizer": "metaspace"}
    run_stage(
        train_tokenizer, {"stage": "train_tokenizer", "normalizer": "nmt_nfkc", **joint}, tokenizer, corpus=[corpus]
    )
    run_stage(encode_corpus, {"stage": "encode_corpus"}, tokens, corpus=corpus, tokenizer=tokenizer)
    return TokenData(corpus, tokens, tokenizer)


def _write_corpus(manifest: Path, documents: dict[str, int]) -> None:
    rng = random.Random(5)
    verbs, nouns = ["sees", "likes", "finds", "carries", "draws"], ["dog", "child", "teacher", "river", "garden"]
    columns = ["doc_id", "source", "split", "text"]
    schema = pa.schema(
        [(name, pa.string()) for name in columns] + [(n, pa.int32()) for n in ("n_sentences", "n_words")]
    )
    with stage_run(manifest, {"stage": "convert_corpus", "stage_version": 1}) as run:
        for split, count in documents.items():
            with ShardWriter(manifest.parent, split, schema, 50) as writer:
                for index in range(count):
                    sentences = [
                        f"the {rng.choice(nouns)} {rng.choice(verbs)} a {rng.choice(nouns)} ." for _ in range(12)
                    ]
                    text = "\n".join(sentences[:7]) + "\n\n" + "\n".join(sentences[7:])
                    row = {"doc_id": f"{split}/{index}", "source": "generated", "split": split, "text": text}
                    writer.write({**row, "n_sentences": 12, "n_words": 72})
            for path in writer.paths:
                run.add_output(path)


@pytest.fixture
def train_here(
    single_process: None,
    token_data: TokenData,
    pretrain_slice: SliceFactory,
    runtime_slice: SliceFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Manifest]:
    """Train and export the model `name` within this process, which takes a second; returns its manifest."""
    monkeypatch.setattr("hatchery.training.run.process_group", lambda *_: nullcontext())
    # Without these patches, determinism and threads would stay set for all other tests.
    monkeypatch.setattr("hatchery.training.run.prepare_device", lambda *_: None)

    def train(
        name: str,
        runtime: dict[str, Any] | None = None,
        teachers: Sequence[Path] = (),
        members: Sequence[Path] = (),
        order_model: Path | None = None,
        order_words: Path | None = None,
        order_corpus: Path | None = None,
        initial: Path | None = None,
        **changes: Any,
    ) -> Manifest:
        settings, output = pretrain_slice(**changes), tmp_path / name / "manifest.json"
        ordering = order_model, order_words, order_corpus
        inputs = Inputs(token_data.tokens, token_data.tokenizer, initial, None, teachers, members, *ordering)
        job = Job(settings, inputs.by_name, output)
        options = runtime_slice(**(runtime or {}))
        train_and_export(job, pretrain_settings(settings), options, inputs, tmp_path / "checkpoints", name)
        return read_manifest(output)

    return train


@dataclass
class Command:
    """Starts the pretrain command on the small corpus, with everything it writes below `folder`."""

    repository: Path
    tokens: Path
    tokenizer: Path
    folder: Path
    settings: dict[str, Any]
    runtime: dict[str, Any]
    # Manifest of the model to start from.
    initial: Path | None = None
    # Manifests of the models to learn from.
    teachers: Sequence[Path] = ()
    # Other inputs of the stage, by argument.
    more: Mapping[str, Path] = field(default_factory=dict)

    @property
    def output(self) -> Path:
        return self.folder / "output" / "manifest.json"

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def run_folder(self) -> Path | None:
        return next(self.checkpoints.glob("*"), None)

    def start(self, **environment: str) -> subprocess.Popen[str]:
        self.folder.mkdir(exist_ok=True)
        given = {"tokens": self.tokens, "tokenizer": self.tokenizer, "checkpoints": self.checkpoints}
        given |= {"runtime": self.runtime, "initial_model": self.initial, "teachers": list(self.teachers)}
        command = stage_command("pretrain", self.settings, self.output, **given, **self.more)
        variables = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
        return Forked(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables)

    def start_processes(self, number: int) -> list[subprocess.Popen[str]]:
        """Start the processes of one run, which meet at a free port of this machine."""
        if number == 1:
            return [self.start()]
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(number)}
        return [self.start(**meeting, RANK=str(rank), LOCAL_RANK=str(rank)) for rank in range(number)]

    def finish(self, processes: int = 1) -> str:
        """Run to the end; return the first process's stderr."""
        ends = [(process, *process.communicate(timeout=300)) for process in self.start_processes(processes)]
        for process, out, err in ends:
            assert process.returncode == 0, err
            assert out == ""
        return ends[0][2]

    def fail(self) -> str:
        """Run to a failure with a message and without output; return stderr."""
        process = self.start()
        _, err = process.communicate(timeout=120)
        assert process.returncode == 1 and not self.output.exists(), err
        assert "Traceback" not in err
        return err

    def kill_after(self, step: int) -> None:
        """Start a process, and kill it after `step` steps."""
        process = self.start()
        self.wait_for_step(process, step)
        process.kill()
        process.communicate()

    def rows(self) -> list[dict[str, Any]]:
        """Return the metrics of the finished run."""
        return [json.loads(line) for line in self.output.with_name("metrics.jsonl").read_text().splitlines()]

    def weights(self) -> dict[str, torch.Tensor]:
        """Return the weights of the finished model."""
        return load_file(self.output.with_name("model.safetensors"))

    def provenance(self) -> dict[str, Any]:
        """Return the provenance of the finished run, which is not in the manifest."""
        return dict(json.loads(self.output.with_name("provenance.json").read_text()))

    def finished_steps(self) -> int:
        metrics = self.run_folder / "metrics.jsonl" if self.run_folder else None
        return metrics.read_text().count("\n") if metrics and metrics.exists() else 0

    def wait_for_step(self, process: subprocess.Popen[str], step: int) -> None:
        deadline = time.monotonic() + 180
        while self.finished_steps() < step:
            assert process.poll() is None and time.monotonic() < deadline, f"never came to step {step}"
            time.sleep(0.002)

    def digests(self) -> dict[str, str]:
        manifest = read_manifest(self.output)
        return {output.path.name: output.sha256 for output in manifest.outputs} | {"manifest": manifest.digest}


@pytest.fixture(scope="session")
def make_command(
    repository: Path,
    token_data: TokenData,
    pretrain_slice: SliceFactory,
    runtime_slice: SliceFactory,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., Command]:
    def make(
        runtime: dict[str, Any] | None = None,
        initial: Path | None = None,
        teachers: Sequence[Path] = (),
        more: Mapping[str, Path] = MappingProxyType({}),
        **changes: Any,
    ) -> Command:
        settings = pretrain_slice(**{"steps": 40, "long": (0.6, 2), **changes})
        folder = tmp_path_factory.mktemp("pretrain")
        options = runtime_slice(**(runtime or {}))
        return Command(
            repository, token_data.tokens, token_data.tokenizer, folder, settings, options, initial, teachers, more
        )

    return make
