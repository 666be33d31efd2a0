"""Peak memory of evaluations and of the export, for few and for many texts.

Each stage runs in a separate process, on one thread, with a small model of random weights. A text is a line of 12
words. The input of `reading times` is a table with a row for each word, and the input of `reading (BabyLM)` is a table
with a row for each text. For the export, the model has a checkpoint for each 1,000 texts. The last column contains the
growth of the peak memory from the second last to the last number of texts, in bytes per additional text.

    python benchmarks/memory.py [--texts 1000 20000] [--only surprisal filling]
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import numpy as np
import pyarrow as pa
from peak_memory import peak_memory

from hatchery.artifacts.manifests import stage_run
from hatchery.artifacts.parquet import ShardWriter
from hatchery.evaluation.surprisal.human_data import NUMBERS
from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import build_language_model, initialise_
from hatchery.modeling.store import save_model
from hatchery.raw.registration import register_source
from hatchery.runner import run_stage
from hatchery.tokenization.stages.encode_corpus import encode_corpus
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
WORDS = 12
SIZES = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
    "position_bucket_size": 8, "max_position_embeddings": 64,
}  # fmt: skip
OBJECTIVE = {"task": "causal", "segments": "documents"}
RUNTIME = {"device": "cpu", "threads": 1}
EXPORT: dict[str, Any] = {
    "experiment": "memory", "description": "", "run": {"name": "small-s1", "model": "small", "seed": 1}, "seeds": [1],
    "model": "small", "model_description": "", "corpus": "texts", "corpus_description": "", "sources": [],
}  # fmt: skip


def lines(number: int) -> Iterator[str]:
    """Yield texts of 12 words each, drawn by Zipf's law from 5,000 invented words."""
    draw = np.random.default_rng(0)
    letters = draw.integers(97, 123, (5_000, 7), dtype=np.uint8)
    lexicon = [bytes(row[: 2 + place % 6]).decode() for place, row in enumerate(letters)]
    shares = 1 / np.arange(1, len(lexicon) + 1)
    cumulative = np.cumsum(shares / shares.sum())
    for _ in range(number):
        yield " ".join(lexicon[place] for place in np.searchsorted(cumulative[:-1], draw.random(WORDS)))


def write_corpus(manifest: Path, documents: dict[str, Iterator[str]]) -> Path:
    """Write texts by split in the format of a converted corpus, and return the manifest of this corpus."""
    strings = [(name, pa.string()) for name in ("doc_id", "source", "split", "text")]
    schema = pa.schema([*strings, ("n_sentences", pa.int32()), ("n_words", pa.int32())])
    with stage_run(manifest, {"stage": "convert_corpus", "stage_version": 1}) as run:
        for split, texts in documents.items():
            with ShardWriter(manifest.parent, split, schema, 100_000) as writer:
                for index, text in enumerate(texts):
                    row = {"doc_id": f"{split}/{index}", "source": "texts", "split": split, "text": text}
                    writer.write({**row, "n_sentences": text.count("\n") + 1, "n_words": len(text.split())})
            for path in writer.paths:
                run.add_output(path)
    return manifest


class Work:
    """A small causal model in a folder. Each method in WORKS writes input data of a stage into this folder, and returns
    the stage's name and arguments.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        corpus = write_corpus(folder / "first/manifest.json", {"train": lines(1_000)})
        self.tokenizer = folder / "tokenizer/manifest.json"
        settings = {"kind": "byte_bpe", "vocabulary_size": 1_024, "special_tokens": "gpt_bert"}
        parts = {"normalizer": "gpt_bert", "pre_tokenizer": "gpt_bert"}
        run_stage(train_tokenizer, {**_stage("train_tokenizer"), **settings, **parts}, self.tokenizer, corpus=[corpus])
        tokens = self._tokens("first")
        self.model = folder / "model/manifest.json"
        model = build_language_model(model_config({"vocab_size": 1_024, **SIZES}), causal=True)
        initialise_(model, seed=0)
        inputs = {"tokens": tokens, "tokenizer": self.tokenizer}
        with stage_run(self.model, {**_stage("pretrain"), "objective": OBJECTIVE}, inputs) as run:
            copied = self.model.with_name("tokenizer.json")
            copied.write_bytes(self.tokenizer.with_name("tokenizer.json").read_bytes())
            for path in [*save_model(self.model.parent, model), copied]:
                run.add_output(path)

    def _tokens(self, name: str) -> Path:
        """Encode the corpus `name`; return the manifest of its token shards."""
        output = self.folder / f"{name}-tokens/manifest.json"
        corpus = self.folder / name / "manifest.json"
        run_stage(encode_corpus, _stage("encode_corpus"), output, corpus=corpus, tokenizer=self.tokenizer)
        return output

    def _source(self, name: str, written: Iterator[str]) -> str:
        """Write the lines `written` to the file `name`; return the manifest of a source that contains this file."""
        path = self.folder / f"{name.partition('.')[0]}-data" / name
        path.parent.mkdir(exist_ok=True)
        with path.open("w", encoding="utf-8") as handle:
            handle.writelines(f"{line}\n" for line in written)
        register_source("texts", path.parent, self.folder / f"{name}.json")
        return str(self.folder / f"{name}.json")

    def surprisal(self, texts: int) -> tuple[str, dict[str, Any]]:
        """Return the stage `measure_surprisal` and its inputs: a text file with one text per line."""
        source = self._source(f"lines{texts}.txt", lines(texts))
        return "measure_surprisal", {"settings": {"name": "texts"}, "source": source}

    def surprisal_of_rows(self, texts: int) -> tuple[str, dict[str, Any]]:
        """Return the stage `measure_surprisal` and its inputs: a table with a row for each word."""
        source = self._source(f"rows{texts}.csv", self._rows(texts))
        settings = {"name": "texts", "column": "word", "text": "item", "order": "position"}
        return "measure_surprisal", {"settings": settings, "source": source}

    def reading_times(self, texts: int) -> tuple[str, dict[str, Any]]:
        """Return the stage `measure_reading_times` and its inputs: a table with a row for each word."""
        source = self._source(f"times{texts}.csv", self._rows(texts))
        settings = {"name": "times", "participant": None, "random_effects": "none"}
        return "measure_reading_times", {"settings": settings, "source": source}

    def reading(self, texts: int) -> tuple[str, dict[str, Any]]:
        """Return the stage `measure_reading` and its inputs: a table with BabyLM's columns and a row for each text."""
        draw = np.random.default_rng(1)

        def rows() -> Iterator[str]:
            yield ",".join(("item", "word", "prev_word", "prev_item", *NUMBERS))
            for line in lines(texts):
                *_, before, word = words = line.split()
                context, numbers = " ".join(words[:-1]), draw.integers(1, 500, len(NUMBERS)).tolist()
                yield ",".join((context, word, before, " ".join(words[:-2]), *map(str, numbers)))

        source = self._source(f"babylm{texts}.csv", rows())
        return "measure_reading", {"settings": {"files": "*.csv"}, "source": source}

    def filling(self, texts: int) -> tuple[str, dict[str, Any]]:
        """Return the stage `fill_sentences` and its inputs: documents that contain one text each."""
        corpus = write_corpus(self.folder / f"filled{texts}/manifest.json", {"dev": lines(texts)})
        return "fill_sentences", {"settings": {}, "corpus": str(corpus)}

    def perplexity(self, texts: int) -> tuple[str, dict[str, Any]]:
        """Return the stage `measure_perplexity` and its inputs: documents that contain one text each."""
        return self._perplexity(f"documents{texts}", lines(texts))

    def perplexity_of_a_long_text(self, texts: int) -> tuple[str, dict[str, Any]]:
        """Return the stage `measure_perplexity` and its inputs: one document that contains all texts."""
        return self._perplexity(f"long{texts}", iter(["\n".join(lines(texts))]))

    def _perplexity(self, name: str, documents: Iterator[str]) -> tuple[str, dict[str, Any]]:
        write_corpus(self.folder / name / "manifest.json", {"dev": documents})
        settings = {"splits": ["dev"], "sequence_length": 64, "masking": "own", "sequences": None}
        return "measure_perplexity", {"settings": settings, "tokens": str(self._tokens(name))}

    def export(self, texts: int) -> tuple[str, dict[str, Any]]:
        """Return the stage `export_model` and its inputs: a model with a checkpoint for each 1,000 texts."""
        checkpoints = {f"chck_{number + 1}M": str(self.model) for number in range(texts // 1_000)}
        return "export_model", {"settings": EXPORT, "checkpoints": checkpoints, "pretraining": str(self.model)}

    def _rows(self, texts: int) -> Iterator[str]:
        draw = np.random.default_rng(2)
        yield "item,position,word,rt"
        for item, line in enumerate(lines(texts)):
            for position, (word, time) in enumerate(zip(line.split(), draw.normal(300, 50, WORDS), strict=True)):
                yield f"t{item},{position},{word},{time:.1f}"


WORKS: dict[str, Callable[[Work, int], tuple[str, dict[str, Any]]]] = {
    "surprisal": Work.surprisal,
    "surprisal, rows of words": Work.surprisal_of_rows,
    "reading times": Work.reading_times,
    "reading (BabyLM)": Work.reading,
    "filling": Work.filling,
    "perplexity": Work.perplexity,
    "perplexity of one long text": Work.perplexity_of_a_long_text,
    "export": Work.export,
}


def _stage(name: str) -> dict[str, Any]:
    return {"stage": name, "stage_version": 1}


def measured(work: Work, name: str, texts: int) -> float:
    """Return the peak memory (MB) of a stage with this number of texts."""
    stage, call = WORKS[name](work, texts)
    if stage not in ("fill_sentences", "export_model"):
        call["runtime"] = RUNTIME
    if stage != "export_model":
        call["model"] = str(work.model)
    call["settings"] = {**_stage(stage), **call["settings"]}
    call["output"] = str(work.folder / f"results/{name}-{texts}/manifest.json")
    path = work.folder / "call.json"
    path.write_text(json.dumps(call), encoding="utf-8")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, str(SCRIPTS / "run.py"), stage, str(path)]
    return peak_memory(command, environment)[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, nargs="+", default=[1_000, 20_000])
    parser.add_argument("--only", nargs="+", choices=WORKS, default=list(WORKS))
    arguments = parser.parse_args()
    print(
        "Each row is one stage with one kind of input. It runs in a separate process for each number of texts.\n\n"
        f"| stage, and its input | {' | '.join(f'peak memory (MB), {texts:,} texts' for texts in arguments.texts)} | "
        "bytes per additional text |"
    )
    print(f"|---|{'---:|' * (len(arguments.texts) + 1)}")
    with tempfile.TemporaryDirectory() as name:
        work = Work(Path(name))
        for kind in arguments.only:
            peaks = [measured(work, kind, texts) for texts in arguments.texts]
            slope = ""
            if len(peaks) > 1:
                slope = f"{1e6 * (peaks[-1] - peaks[-2]) / (arguments.texts[-1] - arguments.texts[-2]):,.0f}"
            print(f"| {kind} | {' | '.join(f'{peak:,.0f}' for peak in peaks)} | {slope} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
