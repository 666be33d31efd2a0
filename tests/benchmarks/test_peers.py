"""The comparison with other libraries: missing libraries are left out, with the reason."""

import sys
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks import peers

TINY = Namespace(tiny=True, repetitions=1)


def test_a_peer_that_is_not_there_is_left_out_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("minicons", "lm_eval"):
        # None makes the import fail as if the package were missing.
        monkeypatch.setitem(sys.modules, name, None)
    rows = list(peers.score_rows(TINY, tmp_path))
    assert [(work, peer) for work, peer, _ in rows] == [
        ("scoring from left to right", "minicons"),
        ("scoring from left to right", "lm-evaluation-harness"),
        ("pseudo-log-likelihoods", "minicons"),
    ]
    assert all(isinstance(found, str) and peer.split("-")[0] in found.replace("lm_", "lm-") for _, peer, found in rows)


def test_steps_are_compared_with_the_library(tmp_path: Path) -> None:
    rows = list(peers.step_rows(TINY, tmp_path))
    assert [work for work, _, _ in rows] == ["masked step, 32 tokens", "causal step, 32 tokens"]
    assert all(isinstance(found, float) and found > 0 and "transformers 5" in peer for _, peer, found in rows)


def test_the_program_that_only_scores_a_sentence_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    models, _, _ = peers.made_model(tmp_path, tiny=True)
    monkeypatch.setattr(sys, "argv", ["ours", str(models["causal"].parent), str(peers.SCRIPTS)])
    exec(peers.OURS, {})
    assert float(capsys.readouterr().out) < 0
