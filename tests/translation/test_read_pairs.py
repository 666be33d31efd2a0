"""Reading a test set: pairs in either direction, and one clear line for a corpus that has none."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hatchery.artifacts.manifests import stage_run
from hatchery.errors import CorpusError
from hatchery.evaluation.settings import HeldOutPairs
from hatchery.evaluation.translation import read_pairs

TEST = HeldOutPairs(corpus="mine")


def corpus_of(folder: Path, split: str, texts: list[str]) -> Path:
    output = folder / "manifest.json"
    with stage_run(output, {"stage": "convert_corpus", "stage_version": 1}, {}) as run:
        names = [f"{split}/{index}" for index in range(len(texts))]
        table = pa.table({"doc_id": names, "source": ["mine"] * len(texts), "text": texts})
        pq.write_table(table, run.add_output(folder / f"{split}-00000-of-00001.parquet"))
    return output


@pytest.mark.parametrize(
    ("direction", "expected"), [("forward", (["Eins", "Zwei"], ["One", "Two"])), ("backward", (["One"], ["Eins"]))]
)
def test_the_direction_says_which_side_is_the_source(
    tmp_path: Path, direction: str, expected: tuple[list[str], list[str]]
) -> None:
    pairs = ["Eins\nOne", "Zwei\nTwo"][: len(expected[0])]
    assert read_pairs(corpus_of(tmp_path, "test", pairs), TEST, direction) == expected


@pytest.mark.parametrize("texts", [["A story.\nWith\n\nparagraphs."], ["Eins\nOne", "alone"], []])
def test_a_corpus_without_pairs_is_refused(tmp_path: Path, texts: list[str]) -> None:
    expected = r"the split 'test' holds no pairs of sentences; expected a corpus whose sources have the reader parallel"
    with pytest.raises(CorpusError, match=expected):
        read_pairs(corpus_of(tmp_path, "test", texts), TEST, "forward")


def test_a_split_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="has no split 'test'; there are: dev"):
        read_pairs(corpus_of(tmp_path, "dev", ["Eins\nOne"]), TEST, "forward")
