"""Questions to a model in Python and at the prompt: the evaluations' numbers, and one line per mistake."""

import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from faults import damaged

import hatchery
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.commands import try_
from hatchery.evaluation import asked_model
from hatchery.evaluation.asked_model import _IN_A_WORD
from hatchery.evaluation.filled_sentences import left_out
from hatchery.evaluation.minimal_pairs.scoring import sentence_scores, token_scores
from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel
from hatchery.evaluation.runtime import load_pretrained
from hatchery.evaluation.sentences_file import GAP
from hatchery.evaluation.surprisal import words
from hatchery.evaluation.written_text import _readable, continuation
from hatchery.modeling.store import save_model
from hatchery.tokenization.tokenizer_file import WordMark

SENTENCES = ["The old dogs sleep .", "The old dog sleeps ."]


@pytest.fixture(scope="module")
def causal_manifest(make_model_manifest: Callable[..., Path]) -> Path:
    return make_model_manifest(causal=True)


def guessed(manifest: Path, sentence: str, index: int, predicted_before: int = 0) -> np.ndarray:
    """Return the probabilities [V] of all subwords at a masked token of `sentence`; special tokens have 0."""
    network, tokenizer = load_pretrained(manifest)
    ids = [tokenizer.cls_id, *tokenizer.encode_sentences([sentence])[0], *tokenizer.end_ids]
    ids[index + 1] = tokenizer.mask_id
    with torch.no_grad():
        states = network.eval().encoder(torch.tensor([ids]))[-1][0]
        found = network.logits_at(states[index + 1 - predicted_before]).double().softmax(-1).numpy()
    found[: tokenizer.n_special] = 0
    return found[: tokenizer.vocabulary_size]


def test_a_gap_is_filled_with_the_most_probable_subwords(model_manifest: Path) -> None:
    model, sentence = hatchery.model(model_manifest.parent), "She likes old dogs ."
    tokens = model.tokenizer.backend.encode(sentence, add_special_tokens=False)
    assert left_out(model, sentence) == (4, 9), tokens.tokens
    # Two special tokens frame the sentence.
    for room, found in ((2, (4, 9)), (1, None)):
        limited: Any = SimpleNamespace(tokenizer=model.tokenizer, longest_input=len(tokens.ids) + room)
        assert left_out(limited, sentence) == found
    filled = model.fill(f"She {GAP} old dogs .", number=3)
    expected = guessed(model_manifest, sentence, tokens.tokens.index("Ġlikes"))
    best = np.argsort(-expected, kind="stable")[:3]
    assert filled["probability"].to_numpy() == pytest.approx(expected[best], abs=1e-6)
    whole = [model.tokenizer.decode([int(index)]).strip() for index in best]
    readable = ["(part of a character)" if "\ufffd" in text else text for text in whole]
    assert [text.removeprefix("…") for text in filled["text"]] == readable
    two = hatchery.model(model_manifest).fill("The __ near the __ sleep .", number=2)
    assert two.select("gap", "rank").rows() == [(1, 1), (1, 2), (2, 1), (2, 2)]


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        (
            WordMark("byte_level"),
            {" dog": "dog", "s": "…s", ",": ",", "\ufffd": "(part of a character)", " ": "(space)"},
        ),
        (WordMark("metaspace", "▁"), {"▁dog": "dog", "s": "…s", "4": "…4", "▁": "(space)", ".": "."}),
        (WordMark("continuation", "##"), {"dog": "dog", "##s": "…s", "##,": ","}),
    ],
)
def test_a_subword_that_continues_a_word_has_an_ellipsis_in_every_spelling(
    mark: WordMark, expected: dict[str, str]
) -> None:
    texts = list(expected)
    tokenizer: Any = SimpleNamespace(word_mark=mark, decode=lambda ids: texts[ids[0]])
    assert {text: _readable(tokenizer, index, text) for index, text in enumerate(texts)} == expected


def test_scores_add_up_to_surprisals_and_states_are_those_of_the_framed_sentence(model_manifest: Path) -> None:
    model = hatchery.model(model_manifest)
    scores, words = model.scores(SENTENCES), model.surprisals(SENTENCES)
    assert scores["sentence"].to_list() == SENTENCES
    bits = words.group_by("sentence", maintain_order=True).agg(pl.col("surprisal").sum())["surprisal"]
    assert np.allclose(-scores["score"].to_numpy() / math.log(2), bits.to_numpy(), atol=1e-4)
    alone = model.scores(SENTENCES[0]), model.surprisals(SENTENCES[0])
    assert [frame.height for frame in alone] == [1, 5], "a text is one sentence, not its characters"
    assert model.scores([]).schema == scores.schema
    found = model.hidden_states(SENTENCES[0])
    assert found.states.shape == (3, len(found.tokens), 32)
    assert found.tokens[0] == "[CLS]" and found.tokens[-1] == "[SEP]"
    assert found.attentions is not None and found.attentions.shape == (2, 2, len(found.tokens), len(found.tokens))
    assert np.allclose(found.attentions.sum(-1), 1, atol=1e-5)


def test_a_beginning_goes_on_as_on_the_page_and_draws_depend_on_their_seed_alone(causal_manifest: Path) -> None:
    model = hatchery.model(causal_manifest)
    network, tokenizer = load_pretrained(causal_manifest)
    (ids,) = tokenizer.encode_sentences(["The old"])
    expected = tokenizer.decode(continuation(network.eval(), tokenizer, [tokenizer.cls_id, *ids])).strip()
    assert model.continuation("The old") == expected
    assert model.continuation("The old", seed=1) == model.continuation("The old", seed=1)
    assert len({model.continuation("The old", seed=seed) for seed in range(5)}) > 1
    attentions = model.hidden_states("The old dogs").attentions
    assert attentions is not None and np.all(np.triu(attentions, k=1) == 0), "nothing behind a token is seen"


def test_a_hybrid_model_is_asked_from_left_to_right_where_that_is_wanted(make_model_manifest) -> None:
    manifest = make_model_manifest(objective={"task": "hybrid"})
    model, (network, tokenizer) = hatchery.model(manifest), load_pretrained(manifest)
    causal = HatcheryModel(network, tokenizer, torch.device("cpu"), "causal")
    expected = sentence_scores(token_scores(causal, causal.encode(SENTENCES), "left_to_right"))
    found = model.scores(SENTENCES, scoring="left_to_right")["score"]
    assert found.to_numpy() == pytest.approx(expected)
    words = model.surprisals(SENTENCES, scoring="left_to_right")
    bits = words.group_by("sentence", maintain_order=True).agg(pl.col("surprisal").sum())["surprisal"]
    assert bits.to_numpy() == pytest.approx(-expected / math.log(2))
    both = model.scores(SENTENCES)["score"] + found
    assert model.scores(SENTENCES, scoring="fused")["score"].to_numpy() == pytest.approx(both.to_numpy())


@pytest.mark.parametrize("share", [0, 1])
def test_a_hybrid_model_of_one_kind_of_sequences_is_asked_for_what_it_learned(make_model_manifest, share: int) -> None:
    manifest = make_model_manifest(objective={"task": "hybrid", "causal_share": share})
    model, (network, tokenizer) = hatchery.model(manifest), load_pretrained(manifest)
    assert (model.continues, model.fills_gaps) == (bool(share), not share)
    its = ("causal", "left_to_right", 0) if share else ("masked", "pll", 1)
    alone = HatcheryModel(network, tokenizer, torch.device("cpu"), its[0], its[2])
    expected = sentence_scores(token_scores(alone, alone.encode(SENTENCES), its[1]))
    assert model.scores(SENTENCES)["score"].to_numpy() == pytest.approx(expected)
    never = {0: "masked tokens", 1: "next tokens"}
    for way in ("fused", "mntp" if share else "left_to_right"):
        wanted, learned = never[1 - share], never[share]
        message = f"'{way}' needs predictions of {wanted}, but the model only learned to predict {learned}; use auto"
        with pytest.raises(hatchery.HatcheryError, match=message):
            model.scores(SENTENCES, scoring=way)
    # A hybrid model without causal sequences fills gaps from the logits at the position before the mask.
    if not share:
        expected = guessed(manifest, "The old dogs", 2, predicted_before=1)
        assert model.fill("The old ____", number=1)["probability"].item() == pytest.approx(expected.max(), abs=1e-6)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda model: model.fill("The dogs sleep ."), "got no gap, expected ____ in place of a word"),
        (lambda model: model.fill("The c____t sleep ."), "____ represents a whole word"),
        (lambda model: model.fill(["The ____"]), r"sentence 1: got \['The ____'\], expected a text"),
        (lambda model: model.surprisals(["The", float("nan")]), "sentence 2: got nan, expected a text"),
        (lambda model: model.surprisals(["The", "a \ud800"]), "sentence 2: character .* is half of a surrogate pair"),
        (lambda model: model.fill("The ____ sleep .", number=-1), "number: got -1, expected at least 1"),
        (
            lambda model: model.continuation("The"),
            "expected a single model that Hatchery trained to predict the next token",
        ),
        (lambda model: model.scores([""]), "a sentence has no tokens"),
        (lambda model: model.scores(["The"], scoring="left_to_right"), "needs a causal language model"),
    ],
)
def test_what_cannot_be_asked_is_an_error_in_one_line(model_manifest: Path, ask, message: str) -> None:
    with pytest.raises(hatchery.HatcheryError, match=message) as raised:
        ask(hatchery.model(model_manifest))
    assert "\n" not in str(raised.value)


def test_surprisals_of_many_calls_decode_the_vocabulary_once(model_manifest: Path, monkeypatch) -> None:
    built: list[object] = []
    real = words.Alphabet
    monkeypatch.setattr(asked_model, "Alphabet", lambda model: built.append(model) or real(model))
    monkeypatch.setattr(words, "Alphabet", None)
    model = hatchery.model(model_manifest)
    tables = [model.surprisals(["The dogs"]), model.surprisals(["The dogs"])]
    assert len(built) == 1 and tables[0].equals(tables[1])


def test_damaged_and_exchanged_weights_are_refused(model_manifest: Path, tmp_path: Path) -> None:
    for name in ("one", "other"):
        shutil.copytree(model_manifest.parent, tmp_path / name)
    weights, others = (tmp_path / name / "model.safetensors" for name in ("one", "other"))
    network, _ = load_pretrained(model_manifest)
    with stage_run(others.with_name("manifest.json"), read_manifest(model_manifest).settings) as run, torch.no_grad():
        next(network.parameters()).add_(1)
        for path in [*save_model(others.parent, network), others.with_name("tokenizer.json")]:
            run.add_output(path)
    assert all(hatchery.model(path.parent).fills_gaps for path in (weights, others))
    with damaged(weights, "byte flipped"), pytest.raises(hatchery.HatcheryError, match=f"^{weights}: has the SHA-256"):
        hatchery.model(weights.parent)
    for old, new in ((weights, tmp_path / "kept"), (others, weights), (tmp_path / "kept", others)):
        old.rename(new)
    for path in (weights, others):
        with pytest.raises(hatchery.HatcheryError, match=f"^{path}: has the SHA-256"):
            hatchery.model(path.parent)


@pytest.mark.parametrize("sentence", ["The dogs ____.", "The 'old' ____'s", "黒____猫", "ดี____มาก"])
def test_a_gap_may_touch_marks_and_letters_of_scripts_without_spaces(sentence: str) -> None:
    assert not _IN_A_WORD.search(sentence)


def test_a_device_that_there_is_not_is_told(model_manifest: Path) -> None:
    with pytest.raises(hatchery.HatcheryError, match=r"^device: got 'gpu', allowed are: auto, cpu, cuda$"):
        hatchery.model(model_manifest, device="gpu")  # type: ignore[arg-type]


def test_a_causal_model_has_no_gaps(causal_manifest: Path) -> None:
    with pytest.raises(hatchery.HatcheryError, match="predicts from left to right"):
        hatchery.model(causal_manifest).fill("The ____ sleep .")


@pytest.fixture
def in_checkout(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `python -m hatchery` import the library of this checkout."""
    monkeypatch.setenv("PYTHONPATH", str(repository / "scripts"))


@pytest.mark.usefixtures("in_checkout")
def test_the_prompt_lists_models_fills_continues_compares_and_ends_with_its_input(
    model_manifest: Path, causal_manifest: Path, tmp_path: Path
) -> None:
    trained = tmp_path / "results" / "mine" / "pretraining"
    trained.mkdir(parents=True)
    (trained / "a-s1").symlink_to(model_manifest.parent)
    (tmp_path / "results" / "mine" / "baselines").mkdir()
    (tmp_path / "results" / "mine" / "baselines" / "b").symlink_to(causal_manifest.parent)
    lines = [
        "The ____ sleep .",
        "2",
        "The old",
        "The ____ sleep .",
        "1",
        "The old dogs",
        "The dogs | A cat",
        "a|b|c",
        "",
        "3",
        "a-s2",
        "b",
        "The ____ | The cat",
        "Caf\udce9 ____",
    ]
    command = [sys.executable, "-m", "hatchery", "try", "mine", "--project", str(tmp_path)]
    # The input is decoded like a terminal's and contains a byte that is not UTF-8.
    text = {"encoding": "utf-8", "errors": "surrogateescape"}
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, timeout=100, **text)
    assert (done.returncode, done.stderr) == (0, "")
    listed, *answers = done.stdout.split("> ")
    # Without a terminal, the output repeats the input lines.
    assert [one.partition("\n")[0] for one in answers] == [*lines[:-1], "Caf\ufffd ____", ""]
    answers = [listed, *(one.partition("\n")[2] for one in answers)]
    assert "  1  a-s1" in answers[0] and "  2  b\n" in answers[0]
    assert answers[1].count(" %") == 5
    assert answers[3].startswith("The old ") and answers[3].count("(drawn)") == 2
    assert "predicts from left to right and cannot fill ____" in answers[4]
    assert answers[6].count(" bits") == 3
    first, second, verdict = (line.split() for line in answers[7].splitlines()[:3])
    assert (first[-2:], second[-2:]) == (["The", "dogs"], ["A", "cat"])
    assert verdict[1] == ("first" if float(first[0]) < float(second[0]) else "second")
    assert "got 3 sentences" in answers[8]
    assert answers[9].strip() == "a-s1"
    assert "got 3, expected the number (1 to 2) or the name of a model" in answers[10]
    assert "no model is called 'a-s2'; did you mean 'a-s1'?" in answers[11]
    assert answers[12].strip() == "b"
    assert "write a word in place of ____" in answers[13]
    assert "predicts from left to right" in answers[14]
    message = r"there is no finished model; run: make run EXPERIMENT=min; did you mean 'mine'\?"
    with pytest.raises(hatchery.HatcheryError, match=message):
        try_.command("min", tmp_path)


@pytest.mark.usefixtures("in_checkout")
def test_a_reader_that_stops_ends_the_prompt_in_silence(model_manifest: Path, tmp_path: Path) -> None:
    trained = tmp_path / "results" / "mine" / "pretraining"
    trained.mkdir(parents=True)
    (trained / "a-s1").symlink_to(model_manifest.parent)
    command = [sys.executable, "-m", "hatchery", "try", "mine", "--project", str(tmp_path)]
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipe) as prompt:
        assert prompt.stdin and prompt.stdout and prompt.stderr
        prompt.stdin.write("The old dogs\n" * 4)
        prompt.stdout.close()
        prompt.stdin.close()
        assert prompt.stderr.read() == "" and prompt.wait(100) == 0


def test_ctrl_c_gives_up_a_line_or_an_answer_and_the_next_line_is_answered(
    model_manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    (tmp_path / "results" / "mine" / "pretraining").mkdir(parents=True)
    (tmp_path / "results" / "mine" / "pretraining" / "a-s1").symlink_to(model_manifest.parent)
    typed = iter([KeyboardInterrupt(), "The dogs", "The cats", EOFError()])

    def read(_: str) -> str:
        if isinstance(line := next(typed), BaseException):
            raise line
        return line

    def answer(_: object, line: str) -> Iterator[str]:
        if line == "The dogs":
            raise KeyboardInterrupt
        yield f"answer to {line}"

    monkeypatch.setattr("builtins.input", read)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(try_, "answer", answer)
    try_.command("mine", tmp_path)
    assert capsys.readouterr().out.splitlines()[-4:] == ["", "", "answer to The cats", ""]


def test_asking_leaves_the_threads_of_the_caller_alone(model_manifest: Path) -> None:
    threads = torch.get_num_threads()
    hatchery.model(model_manifest).scores(SENTENCES)
    assert torch.get_num_threads() == threads
