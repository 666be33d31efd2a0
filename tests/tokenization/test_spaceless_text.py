"""A tokenizer trains on as many lines without spaces as fit into memory, and on all lines of other text."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from hatchery.artifacts.manifests import read_manifest
from hatchery.runner import run_stage
from hatchery.tokenization import spaceless_text, trainer
from hatchery.tokenization.spaceless_text import share_to_train_on
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer
from hatchery.tokenization.trainer_settings import TokenizerSettings
from hatchery.typed import keys_of

NEW = [f"{chr(0x4E00 + index)}{chr(0x5000 + index)}" for index in range(100)]
"""Lines of 6 bytes, each a different word."""
PARTS = {
    "chinese": NEW,
    "thai": [f"{chr(0x0E01 + index // 10)}{chr(0x0E01 + index % 10)}" for index in range(100)],
    "japanese": [f"{chr(0x3041 + index // 10)}{chr(0x30A1 + index % 10)}" for index in range(100)],
    "english": [f"w{index}" for index in range(100)],
    "cyrillic": [f"{chr(0x0430 + index // 10)}{chr(0x0440 + index % 10)}" for index in range(100)],
    "korean": [f"{chr(0xAC00 + index)}{chr(0xAD00 + index)}" for index in range(100)],
}
BACKEND = trainer.untrained(TokenizerSettings("byte_bpe", 300, individual_digits=False))


@pytest.mark.parametrize(
    ("lines", "total", "expected"),
    [
        # Because 100 lines of 600 bytes are all different, 1,200 bytes have 1,200 bytes of distinct words; 300 are
        # allowed.
        (PARTS["chinese"], 1_200, 0.25),
        (PARTS["thai"], 1_200, 0.25),
        (PARTS["japanese"], 1_200, 0.25),
        (PARTS["chinese"], 300, 1.0),
        (PARTS["chinese"], 299, 1.0),
        (PARTS["chinese"], 301, 300 / 301),
        (PARTS["english"], 1_000_000, 1.0),
        (PARTS["cyrillic"], 1_000_000, 1.0),
        (PARTS["korean"], 1_000_000, 1.0),
        # Every second line has spaces, so half of 1,200 bytes are words without spaces: 600 bytes.
        ([line for word in NEW[:50] for line in (word, "a b cd")], 1_200, 0.5),
    ],
)
def test_the_share_is_that_whose_words_have_the_bytes_that_are_allowed(
    lines: list[str], total: int, expected: float
) -> None:
    assert share_to_train_on(BACKEND, [lines], total, 300) == pytest.approx(expected)


def test_words_that_come_again_are_foretold_by_heaps_law() -> None:
    # In the sampled half (lines 2 and 3), 12 of 12 bytes are distinct words, and in all lines 18 of 24. The exponent is
    # log2(18 / 12), so 240 bytes of text have 18 * 10 ** 0.585 = 69.2 bytes of distinct words; 0.239 of the text has
    # 30.
    assert share_to_train_on(BACKEND, [[NEW[0], NEW[1]], [NEW[2], NEW[1]]], 240, 30) == pytest.approx(0.2395, abs=1e-4)
    # In lines 2 and 3, 6 of 12 bytes are distinct words, and in all lines 18 of 24: new words grow at most as the text
    # does.
    assert share_to_train_on(BACKEND, [[NEW[0], NEW[1]], [NEW[1], NEW[2]]], 240, 30) == pytest.approx(30 / 180)


@pytest.mark.parametrize(("script", "kept"), [("chinese", 50), ("english", 100)])
def test_a_tokenizer_learns_from_lines_of_the_whole_text(
    script: str, kept: int, small: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    for module in (spaceless_text, trainer):
        monkeypatch.setattr(module, "SAMPLED_BYTES", 300)
    lines = PARTS[script] if script == "chinese" else [line * 3 for line in PARTS[script]]
    corpus = small.write_corpus(tmp_path / "corpus", {"train": ["\n".join(lines[:30]), "\n".join(lines[30:])]})
    settings = small.tokenizer_settings(
        kind="byte_bpe", vocabulary_size=500, allow_smaller=True, spaceless_megabytes=3e-4
    )
    run_stage(train_tokenizer, settings, tmp_path / "t/manifest.json", corpus=[corpus])
    measures = read_manifest(tmp_path / "t/manifest.json").measures
    assert measures["training_lines"] == kept
    assert measures.get("available_lines") == (None if kept == 100 else 100)
    assert ("training on 50 of 100 lines" in capsys.readouterr().err) == (kept == 50)


def test_the_amount_is_a_key_that_settings_leave_out_at_its_default() -> None:
    built = TokenizerSettings("byte_bpe", 300)
    assert built.spaceless_megabytes == 8
    assert "spaceless_megabytes" not in keys_of(built)
    assert keys_of(replace(built, spaceless_megabytes=32.0))["spaceless_megabytes"] == 32
