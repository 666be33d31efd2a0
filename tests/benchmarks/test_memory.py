"""The memory benchmarks: the peak is that of the program alone, and stages run with a few texts."""

import os
import re
import sys
from pathlib import Path

import pytest

from benchmarks import memory, spaceless_tokenizer
from benchmarks.peak_memory import peak_memory


def test_the_peak_is_that_of_the_program_and_not_of_the_process_that_starts_it() -> None:
    held = bytearray(os.urandom(1)) * 400_000_000
    small, _ = peak_memory([sys.executable, "-S", "-c", "pass"], os.environ)
    large, _ = peak_memory([sys.executable, "-S", "-c", "bytearray(b'1') * 100_000_000"], os.environ)
    assert len(held) == 400_000_000 and small < 50 and 95 < large - small < 110
    with pytest.raises(RuntimeError, match="ended with status 3"):
        peak_memory([sys.executable, "-S", "-c", "raise SystemExit(3)"], os.environ)


def test_stages_run_with_a_few_texts(tmp_path: Path) -> None:
    work = memory.Work(tmp_path)
    assert {len(line.split()) for line in memory.lines(50)} == {memory.WORDS}
    assert memory.measured(work, "filling", 50) > 50
    assert (tmp_path / "results/filling-50/sentences.json").is_file()


def test_a_tokenizer_of_generated_chinese_is_trained(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["spaceless", "--megabytes", "0.05", "--vocabulary-size", "300"])
    assert spaceless_tokenizer.main() == 0
    found = re.fullmatch(
        r"chinese 0.05 MB, byte_bpe, spaceless_megabytes 5, 300 entries: peak memory (\d+) MB, \d+ CPU s, "
        r"(\d\.\d{4}) pieces per character, share of unknown pieces 0.0000\n",
        capsys.readouterr().out,
    )
    # A character has three bytes, and some 30 merges join only a part of them.
    assert found is not None and int(found[1]) > 50 and 1 < float(found[2]) < 3
