"""Parquet files of other programs: indistinguishable columns, values that are not text, and encrypted columns."""

import base64
import datetime
import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from hatchery.corpora.parquet_files import parquet_rows, pieces_of_column, texts_of_column
from hatchery.corpora.raw_files import Piece
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError
from hatchery.evaluation.probing.conll2012 import read_hub_rows
from hatchery.raw.registration import RawSource

WORDS = pa.array(["good", "fine"])
NUMBERS = pa.array([1, 2])
TIMES = pa.array([datetime.datetime(2026, 1, day) for day in (1, 2)])
BOTH = pa.StructArray.from_arrays([WORDS, NUMBERS], ["b", "b"])
NESTED = pa.StructArray.from_arrays([WORDS], ["b"])


class Keys(pe.KmsClient):
    """A key service that does not encrypt keys."""

    def wrap_key(self, key: bytes, _: str) -> str:
        return base64.b64encode(key).decode()

    def unwrap_key(self, key: str, _: str) -> bytes:
        return base64.b64decode(key)


def encrypted(table: pa.Table, columns: list[str], **footer: bool) -> bytes:
    chosen = pe.EncryptionConfiguration(footer_key="footer", column_keys={"own": columns}, **footer)
    factory = pe.CryptoFactory(lambda _: Keys())
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), chosen)
    written = io.BytesIO()
    with pq.ParquetWriter(written, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    return written.getvalue()


def parquet(columns: list[tuple[str, pa.Array]]) -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([array for _, array in columns], [name for name, _ in columns]), written)
    return written.getvalue()


@pytest.fixture
def source(make_source: Callable[..., RawSource]) -> Callable[[bytes], RawSource]:
    return lambda content: make_source({"a.parquet": content})


ALIKE = {
    "one name twice": ([("text", WORDS), ("id", NUMBERS), ("text", NUMBERS)], "2 columns are called 'text'; rename"),
    "one name twice in an object": ([("text", WORDS), ("a", BOTH)], "2 columns are called 'a.b'; rename all but one"),
    "a.b next to the object a": (
        [("text", WORDS), ("a", NESTED), ("a.b", NUMBERS)],
        "'a.b' also means a field of the column 'a'",
    ),
    "a.c next to the text a": (
        [("a", WORDS), ("text", WORDS), ("a.c", NUMBERS)],
        "'a.c' also means a field of the column 'a'",
    ),
}
READ: dict[str, Callable[[RawSource], object]] = {
    "rows": lambda source: list(parquet_rows(source, "a.parquet", {"text"})),
    "texts": lambda source: list(texts_of_column(Lines(source, "a.parquet"), "text")),
    "pieces": lambda source: list(pieces_of_column(Lines(source, "a.parquet"), "text", 1 << 20, 1)),
    "rows of the hub": lambda source: list(read_hub_rows(source, "a.parquet")),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
@pytest.mark.parametrize(("columns", "message"), ALIKE.values(), ids=ALIKE)
def test_columns_that_cannot_be_told_apart_are_refused(columns, message: str, read, source) -> None:
    with pytest.raises(SourceError, match=rf"a\.parquet: .*{message}"):
        read(source(parquet(columns)))


def test_rows_are_numbered_from_1_in_the_whole_file_also_in_a_piece(source) -> None:
    written = io.BytesIO()
    pq.write_table(pa.table({"text": list("abcdefg")}), written, row_group_size=2)
    opened = source(written.getvalue())

    def places(piece: Piece | None) -> list[tuple[str, str]]:
        rows = parquet_rows(opened, "a.parquet", {"text"}, piece=piece)
        return [(place.rpartition("a.parquet, row ")[2], row["text"]) for place, row in rows]

    assert places(None) == list(zip("1234567", "abcdefg", strict=True))
    assert places(Piece(0, 0, 0, 3, 2)) == [("4", "d"), ("5", "e")]


def test_a_name_with_a_dot_of_its_own_is_a_column(source) -> None:
    opened = source(parquet([("a", NESTED), ("x.b", WORDS)]))
    assert [row["x.b"] for _, row in parquet_rows(opened, "a.parquet", {"x.b", "x"})] == ["good", "fine"]
    assert [row["a"] for _, row in parquet_rows(opened, "a.parquet", {"a"})] == [{"b": "good"}, {"b": "fine"}]


@pytest.mark.parametrize("values", [WORDS.cast(pa.binary()), TIMES, TIMES.cast(pa.date32()), pa.array([[b"x"], None])])
def test_values_that_are_neither_text_nor_numbers_are_refused(values: pa.Array, source) -> None:
    opened = source(parquet([("text", values), ("id", NUMBERS)]))
    with pytest.raises(
        SourceError, match=r"a\.parquet: column 'text' holds .*, expected text or numbers; save the column as"
    ):
        READ["rows"](opened)
    with pytest.raises(SourceError, match=r"a\.parquet: column 'text': expected text, got "):
        READ["texts"](opened)
    assert [row["id"] for _, row in parquet_rows(opened, "a.parquet", {"id"})] == [1, 2]


@pytest.mark.parametrize("read", list(READ.values())[:3], ids=list(READ)[:3])
@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_an_encrypted_column_is_refused_and_others_of_the_file_are_read(plaintext_footer: bool, read, source) -> None:
    table = pa.table({"text": WORDS, "id": NUMBERS})
    opened = source(encrypted(table, ["text"], plaintext_footer=plaintext_footer))
    with pytest.raises(SourceError, match=r"a\.parquet: not readable as Parquet after row 0: .*decrypt"):
        read(opened)
    if plaintext_footer:
        assert [row["id"] for _, row in parquet_rows(opened, "a.parquet", {"id"})] == [1, 2]
