"""Writes all generated demo data into one folder: corpora in raw formats, minimal pairs, and fine-tuning tasks.

Equal settings produce byte-identical files on every machine. The sentences of the minimal pairs and of the tasks,
except for very short sentences of tasks, do not occur in the corpora, so a model has not seen them in pretraining.
"""

import random
import shutil
from collections.abc import Iterator, Sequence

from demo import bnc, layouts
from demo.babylm_evaluation import evaluation_files
from demo.documents import MAKERS, EmbeddedDocument, Kind
from demo.glue import TASKS, task_rows
from demo.grammar import text_of
from demo.meco import meco_files
from demo.multilingual import multilingual_files
from demo.paradigms import PARADIGMS
from demo.parallel import parallel_files
from demo.reading_times import reading_files
from demo.rows import Pair, blimp_rows, draw_pairs, json_lines
from demo.suites import suite_files
from hatchery.artifacts.atomic import write_bytes
from hatchery.artifacts.manifests import StageRun
from hatchery.raw.settings import EmbeddedSettings

FOLDERS = (
    "babylm",
    "babylm_evaluation",
    "bnc",
    "bookcorpus",
    "c4",
    "cbt",
    "childes",
    "edge_probing",
    "filter_data",
    "glue",
    "hans",
    "meco",
    "minimal_pairs",
    "multilingual",
    "parallel",
    "reading_times",
    "superglue",
    "text",
    "wikipedia",
)
_BNC_SHARE = 0.25
_SMALL_SHARE = 0.025
_SMALL_LEAST = 40
_DEVELOPMENT_EVERY = 20
_DOCUMENTS_PER_BNC_TEXT = 8


class _Generator:
    def __init__(self, settings: EmbeddedSettings) -> None:
        self.settings = settings
        self.sentences: set[str] = set()
        self.words = 0
        self.pairs: dict[str, list[Pair]] = {}

    def documents(self, name: str, kinds: Sequence[Kind], count: int) -> list[EmbeddedDocument]:
        """Return `count` documents for one source; the kinds of the documents alternate, and each document has a
        separate random generator.
        """
        made = []
        for index in range(count):
            rng = random.Random(f"{self.settings.seed}/{name}/{index}")
            document = MAKERS[kinds[index % len(kinds)]](rng)
            sentences = document.sentences
            self.sentences.update(text_of(words) for words in sentences)
            self.words += sum(map(len, sentences))
            made.append(document)
        return made

    def layout_random(self, name: str) -> random.Random:
        """Return the random generator for random choices in the raw format of a corpus; it is independent of the
        generators of the documents.
        """
        return random.Random(f"{self.settings.seed}/layout/{name}")

    def bnc_files(self, count: int) -> Iterator[tuple[str, bytes]]:
        """Yield (path, content) of BNC texts; every third text is spoken, and the other texts are written."""
        texts = max(2, count // _DOCUMENTS_PER_BNC_TEXT)
        for index in range(texts):
            text_id = f"{chr(65 + index // 260 % 26)}{chr(65 + index // 10 % 26)}{index % 10}"
            spoken = index % 3 == 2
            kinds: tuple[Kind, ...] = ("conversation",) if spoken else ("story", "story", "story", "article")
            documents = self.documents(f"bnc/{text_id}", kinds, _DOCUMENTS_PER_BNC_TEXT)
            write = bnc.spoken_text if spoken else bnc.written_text
            yield (
                f"Texts/{text_id[0]}/{text_id[:2]}/{text_id}.xml",
                write(text_id, documents, self.layout_random(text_id)),
            )

    def babylm_files(self, count: int) -> Iterator[tuple[str, bytes]]:
        """Yield (path, content) of the training and development files of BabyLM's ten corpora.

        Every twentieth document is a development document.
        """
        for name, (share, kinds, layout) in layouts.CORPORA.items():
            documents = self.documents(f"babylm/{name}", kinds, max(4, round(count * share / 100)))
            development = documents[::_DEVELOPMENT_EVERY]
            training = [document for index, document in enumerate(documents) if index % _DEVELOPMENT_EVERY]
            for suffix, part in (("train", training), ("dev", development)):
                lines = layout(part, self.layout_random(f"{name}.{suffix}"))
                yield f"{name}.{suffix}", "".join(f"{line}\n" for line in lines).encode()

    def other_files(self) -> Iterator[tuple[str, bytes]]:
        """Yield (path, content) of the files of all corpora except the BNC and BabyLM; the path begins with the
        corpus's folder.
        """
        count = max(_SMALL_LEAST, round(self.settings.documents * _SMALL_SHARE))
        sources: tuple[tuple[str, tuple[Kind, ...], object], ...] = (
            ("text", ("story",), layouts.plain_files),
            ("childes", ("conversation",), layouts.childes_file),
            ("c4", ("story", "article"), layouts.c4_file),
            ("wikipedia", ("article",), layouts.wikipedia_file),
            ("bookcorpus", ("story",), layouts.bookcorpus_file),
            ("cbt", ("story",), layouts.cbt_file),
        )
        for folder, kinds, files in sources:
            documents = self.documents(folder, kinds, count)
            for name, content in files(documents, self.layout_random(folder)):  # type: ignore[operator]
                yield f"{folder}/{name}", content

    def pair_files(self) -> Iterator[tuple[str, bytes]]:
        """Yield (path, content) of one BLiMP file per paradigm.

        Call this method after the corpora are generated, because the pairs must not contain sentences of the corpora.
        """
        for paradigm in PARADIGMS:
            pairs = draw_pairs(paradigm, self.settings.pairs_per_paradigm, self.settings.seed, self.sentences)
            self.pairs[paradigm.uid] = pairs
            yield f"{paradigm.uid}.jsonl", json_lines(blimp_rows(paradigm, pairs))

    def task_files(self) -> Iterator[tuple[str, bytes]]:
        """Yield (path, content) of two files for each task: a training file, and a validation file with half as many
        rows.
        """
        count, seed = self.settings.examples_per_task, self.settings.seed
        for name in TASKS:
            training = task_rows(name, count, seed, "train", self.sentences)
            seen = self.sentences | {value for row in training for value in row.values() if isinstance(value, str)}
            validation = task_rows(name, count // 2, seed, "validation", seen)
            yield f"{name}.train.jsonl", json_lines(training)
            yield f"{name}.validation.jsonl", json_lines(validation)


def generate(settings: EmbeddedSettings, run: StageRun) -> None:
    """Write all generated demo data into `run.folder`. The stage `generate_embedded_sources` calls this function."""
    for folder in FOLDERS:
        shutil.rmtree(run.folder / folder, ignore_errors=True)
    generator = _Generator(settings)
    bnc_documents = round(settings.documents * _BNC_SHARE)

    def write(folder: str, files: Iterator[tuple[str, bytes]]) -> None:
        for name, content in files:
            path = run.folder / folder / name
            write_bytes(path, content)
            run.add_output(path)

    write("bnc", generator.bnc_files(bnc_documents))
    write("babylm", generator.babylm_files(settings.documents - bnc_documents))
    run.measures["words_in_bnc_and_babylm"] = generator.words
    write("", generator.other_files())
    write("minimal_pairs", generator.pair_files())
    write("glue", generator.task_files())
    write("parallel", parallel_files(settings.translation_pairs, settings.seed))
    count = settings.examples_per_suite_task
    write("", suite_files(generator.pairs, settings.seed, count, generator.sentences))
    write("babylm_evaluation", evaluation_files(generator.pairs, settings.seed, count, generator.sentences))
    texts = max(_SMALL_LEAST, round(settings.documents * _SMALL_SHARE))
    write("multilingual", multilingual_files(generator.pairs, settings.seed, texts, count))
    write("reading_times", reading_files(generator.pairs, settings.seed))
    write("meco", meco_files(generator.pairs, settings.seed))
    run.measures["words"] = generator.words
    run.measures["different_sentences"] = len(generator.sentences)
