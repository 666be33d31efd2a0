"""Orders by a model's loss, a table of words or a column: difficulties by hand, and the inputs of the job."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.artifacts.parquet import read_rows
from hatchery.corpora.corpus_writer import CorpusWriter, document_row
from hatchery.errors import ConfigError
from hatchery.modeling.store import load_language_model
from hatchery.raw.registration import register_source
from hatchery.tokenization.token_shards import TokenShards
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.training.curriculum import Curriculum
from hatchery.training.measured_difficulty import DocumentValues, ModelLoss, WordValues, values_of_documents, words_of
from hatchery.training.objectives import objective_of
from hatchery.training.objectives.causal import CausalSettings
from hatchery.training.objectives.masked import MaskedSettings
from hatchery.training.settings import TrainingSettings
from hatchery.training.step_plan import StepPlan
from hatchery.typed import build

Train = Callable[..., Manifest]


def examples_of(tokens: Path, length: int = 24) -> Any:
    objective = objective_of(CausalSettings(segments="packed"))
    return objective.examples(TokenShards.open(tokens, "dev"), length)


def loss_by_hand(folder: Path, ids: list[int], labels: list[int]) -> float:
    """Return the mean negative log-probability of each label after its prefix."""
    network, losses = load_language_model(folder).eval(), []
    for place, label in enumerate(labels):
        if label >= 0:
            with torch.no_grad():
                states = network.encoder(torch.tensor([ids[: place + 1]]), causal=True)[-1][0, -1]
                losses.append(-float(network.logits_at(states).double().log_softmax(-1)[label]))
    return float(np.mean(losses))


def test_the_order_by_loss_is_that_of_losses_by_hand(token_data: Any, train_here: Train) -> None:
    small = train_here("small", steps=3, objective={"task": "causal", "segments": "packed"}, sequence_length=24)
    examples = examples_of(token_data.tokens)
    found = ModelLoss(small.folder)(examples)
    drawn = [(index, examples.example(0, 0, index)) for index in range(len(examples))]
    whole = [(index, one) for index, one in drawn if one.piece_lengths is None or len(one.piece_lengths) == 1]
    assert len(whole) > 1
    for index, example in (whole[0], whole[-1]):
        by_hand = loss_by_hand(small.folder, example.input_ids.tolist(), example.labels.tolist())
        assert found[index] == pytest.approx(by_hand, abs=2e-4)
    plan = StepPlan(
        build(
            TrainingSettings,
            {"steps": 2, "batch_size": len(examples), "sequence_length": 24, "order": {"by": "loss", "spread": 0.0}},
        )
    )
    assert plan.settings.order is not None
    order = Curriculum(plan.settings.order, plan, 5, lambda _: examples, ModelLoss(small.folder))
    (part,) = order(plan.at(1))
    assert part.indices.tolist() == np.argsort(found, kind="stable").tolist() and part.epoch == 1


def test_a_run_ordered_by_loss_names_its_model_and_differs_from_a_shuffled_run(train_here: Train) -> None:
    small = train_here("small", steps=2, seed=7)
    keys: dict[str, Any] = {"steps": 2, "order_model": small.path, "order": {"by": "loss"}}
    ordered, plain = train_here("ordered", **keys), train_here("plain", steps=2)
    assert ordered.inputs["order_model"] == small.digest
    weights = [made.file("model.safetensors").read_bytes() for made in (ordered, plain, train_here("again", **keys))]
    assert weights[0] != weights[1] and weights[0] == weights[2]
    with pytest.raises(ConfigError, match=r"order\.by: got 'length' with the input .*; `by: loss` requires this input"):
        train_here("unasked", steps=2, order_model=small.path, order={"by": "length"})


def test_the_order_by_words_has_the_mean_ages_of_the_words(token_data: Any, tmp_path: Path) -> None:
    examples = examples_of(token_data.tokens)
    tokenizer = load_tokenizer(token_data.tokenizer.parent / "tokenizer.json")
    texts = [
        " ".join(tokenizer.decode(part.tokens.tolist(), skip_special_tokens=True) for part in examples.texts(0, 0, i))
        for i in range(len(examples))
    ]
    # Choose the two rarest words of the first sequence; some sequences contain neither word.
    words = [set(re.findall(r"[a-z'’]+", text.lower())) for text in texts]
    rare = sorted(filter(str.isalpha, words[0]), key=lambda one: (sum(one in of for of in words), one))
    word, other, third = rare[:3]
    (tmp_path / "ages").mkdir()
    table = tmp_path / "ages" / "ages.csv"
    table.write_text(
        f"Word,age\n{word.upper()},3.5\n{other},8\nnowhere,1\n{word},99\nunknown,\n{third},NaN\n", encoding="utf-8"
    )
    register_source("ages", tmp_path / "ages", tmp_path / "ages.json")
    of = WordValues(tmp_path / "ages.json", token_data.tokenizer.parent / "tokenizer.json", "Word", "age")
    found = of(examples)
    ages = {word: 3.5, other: 8.0}
    known = [[ages[one] for one in re.findall(r"[a-z'’]+", text.lower()) if one in ages] for text in texts]
    means = [sum(of) / len(of) for of in known if of]
    expected = [sum(of) / len(of) if of else sum(means) / len(means) for of in known]
    assert found == pytest.approx(expected) and 1 < len(means) < len(texts)
    # Tabs separate the columns of a .tsv file.
    (tmp_path / "tabs").mkdir()
    (tmp_path / "tabs" / "ages.tsv").write_text(table.read_text("utf-8").replace(",", "\t"), encoding="utf-8")
    register_source("tabs", tmp_path / "tabs", tmp_path / "tabs.json")
    assert WordValues(tmp_path / "tabs.json", of.tokenizer, "Word", "age")(examples) == pytest.approx(expected)
    assert words_of("The dog’s 3 toys, o'er_x") == ["the", "dog's", "toys", "o'er", "x"]
    with pytest.raises(ConfigError, match=r"order\.value_column: got 'years', the columns of ages\.csv are: Word, age"):
        WordValues(of.source, of.tokenizer, "Word", "years")(examples)


@pytest.fixture(scope="module")
def with_levels(token_data: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the small corpus in which document i of a split has the level 7 * i modulo 120."""
    output = tmp_path_factory.mktemp("levels") / "manifest.json"
    corpus = read_manifest(token_data.corpus)
    with (
        stage_run(output, {"stage": "convert_corpus"}) as run,
        CorpusWriter(run, ["generated"], 50, False, ["level"]) as writer,
    ):
        for path in corpus.files(".parquet"):
            for row in read_rows(path):
                writer.write({**row, "column_level": 7.0 * int(row["doc_id"].partition("/")[2]) % 120})
    return output


def test_the_order_by_a_column_is_that_of_the_documents_levels(token_data: Any, with_levels: Path) -> None:
    # Each document is one sequence. Levels 0, 1, 2 ... belong to documents 0, 103, 86 ..., because 7 * 103 = 721.
    examples = objective_of(MaskedSettings(segments="documents")).examples(
        TokenShards.open(token_data.tokens, "train"), 24
    )
    plan = StepPlan(
        build(
            TrainingSettings,
            {
                **{"steps": 1, "batch_size": len(examples), "sequence_length": 24},
                "order": {"by": "column", "column": "level", "spread": 0.0, "first": "hard"},
            },
        )
    )
    assert plan.settings.order is not None
    measure = DocumentValues(with_levels, token_data.tokens, "level")
    (part,) = Curriculum(plan.settings.order, plan, 5, lambda _: examples, measure)(plan.at(0))
    assert part.indices.tolist() == [103 * level % 120 for level in reversed(range(120))]


def test_a_packed_sequence_has_the_mean_level_of_its_texts(token_data: Any, with_levels: Path) -> None:
    examples = objective_of(CausalSettings(segments="packed")).examples(
        TokenShards.open(token_data.tokens, "train"), 200
    )
    found = DocumentValues(with_levels, token_data.tokens, "level")(examples)
    lengths = TokenShards.open(token_data.tokens, "train").document_lengths().tolist()
    # By hand: a document occupies its tokens and two special tokens; the second sequence begins after 200 tokens.
    filled, inside = 0, []
    for number, length in enumerate(lengths):
        inside.append(7.0 * number % 120)
        filled += length + 2
        if filled >= 198:
            break
    assert len(inside) > 1 and found[0] == pytest.approx(np.mean(inside))


def test_a_column_that_is_missing_in_the_corpus_or_in_a_document_is_named(
    token_data: Any, with_levels: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        ConfigError, match=r"order\.column: got 'levl'; did you mean 'level'\? There are: level among the `numeric"
    ):
        values_of_documents(DocumentValues(with_levels, token_data.tokens, "levl"))
    output = tmp_path / "manifest.json"
    with stage_run(output, {}) as run, CorpusWriter(run, ["generated"], 50, False, ["level"]) as writer:
        writer.write({**document_row("train/0", "generated", "train", "the dog ."), "column_level": None})
    with pytest.raises(ConfigError, match=r"the document 'train/0' of .* has no value in the column 'level'; expected"):
        values_of_documents(DocumentValues(output, token_data.tokens, "level"))


@pytest.mark.slow
@pytest.mark.parametrize("by", ["loss", "words", "column"])
def test_a_killed_run_with_an_order_ends_with_the_bytes_of_an_uninterrupted_run(
    by: str, make_command: Any, with_levels: Path, tmp_path: Path
) -> None:
    order: dict[str, Any] = {"by": by}
    if by == "loss":
        small = make_command(steps=2)
        small.finish()
        more = {"order_model": small.output}
    elif by == "words":
        (tmp_path / "ages").mkdir()
        (tmp_path / "ages" / "ages.csv").write_text("word,value\ndog,2\nriver,5\nsees,3\ndraws,9\n", encoding="utf-8")
        register_source("ages", tmp_path / "ages", tmp_path / "ages.json")
        more = {"order_words": tmp_path / "ages.json"}
    else:
        order["column"] = "level"
        more = {"order_corpus": with_levels}
    # Sequences are longer in the last steps, so each attempt computes two orders.
    whole, killed = (make_command(steps=24, more=more, order=order) for _ in range(2))
    whole.finish()
    killed.kill_after(11)
    assert "continues after step" in killed.finish()
    assert killed.digests() == whole.digests()
    shuffled = make_command(steps=24)
    shuffled.finish()
    assert shuffled.digests()["model.safetensors"] != whole.digests()["model.safetensors"]


def test_keys_of_a_measure_that_is_not_chosen_are_refused() -> None:
    from hatchery.training.start_settings import CurriculumChoice

    for order, message in (
        ({"by": "loss"}, "model: got null, expected a value if `by` is loss"),
        ({"by": "length", "model": {"run": "a"}}, "expected a value if `by` is loss, and no key `model`"),
        ({"by": "words"}, "words: got null, expected a value if `by` is words"),
        ({"by": "column"}, "column: got null, expected a name if `by` is column"),
        ({"by": "length", "column": "age"}, "column: got 'age', expected a name if `by` is column, and null"),
        (
            {"by": "length", "value_column": "age"},
            "value_column: got 'age', which cannot be combined with `by: length`",
        ),
    ):
        with pytest.raises(ConfigError) as refused:
            build(CurriculumChoice, json.loads(json.dumps(order)))
        assert message in str(refused.value)
