"""An experiment that names a BabyLM track must follow its rules; each broken rule is reported."""

import json
from pathlib import Path
from typing import Any

import pytest
from shipped import written

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.experiment.tracks import TRACKS, vocabularies_in
from hatchery.workflow.jobs import Jobs

LEGAL: dict[str, Any] = {
    "corpus": "demo",
    "tokenizer": "demo",
    "track": "strict_small",
    "pretraining": {"batch_size": 32, "budget": {"words_seen": "100M"}, "checkpoints_at": "babylm"},
    "runs": {"ltg_bert": {"model": "ltg_demo"}, "untrained": {"model": "ltg_demo", "pretraining": {"steps": 0}}},
}


def project(folder: Path, **changes: Any) -> Project:
    return written(folder, {"experiments/entry": {**LEGAL, **changes}})


def budget(settings: str) -> dict[str, float]:
    """Return the keys of a run's budget that have a value."""
    return {key: value for key, value in json.loads(settings)["budget"].items() if value is not None}


def test_a_legal_experiment_is_held_to_the_limits_of_its_track(configuration: Path) -> None:
    found = project(configuration)
    found.check("experiment", "entry")
    settings = Jobs(found).settings("pretrain", experiment="entry", run="ltg_bert-s42")
    assert budget(settings) == {"corpus_words": 10_000_000, "epochs": 10, "words_seen": 100_000_000}
    assert "budget" not in Jobs(found).settings("pretrain", experiment="entry", run="untrained-s42")
    settings = Jobs(project(configuration, track=None)).settings("pretrain", experiment="entry", run="ltg_bert-s42")
    assert budget(settings) == {"words_seen": 100_000_000}


@pytest.mark.parametrize(
    ("track", "limits"),
    [
        ("strict_small", (100_000_000, 10_000_000, 10)),
        ("strict", (1_000_000_000, 100_000_000, 10)),
        ("multilingual", (1_000_000_000, 100_000_000, 10)),
        ("chinese", (None, 100_000_000, None)),
    ],
)
def test_each_track_has_the_limits_of_the_challenge(track: Any, limits: tuple[int | None, ...]) -> None:
    """The limits are words seen, words of the training text, and epochs."""
    found = TRACKS[track]
    assert (found.words_seen, found.corpus_words, found.epochs) == limits


def counted(configuration: Path, **keys: object) -> None:
    """Add keys to the corpus `demo` that change how it counts words."""
    path = configuration / "corpora/demo.yaml"
    path.write_text(
        "".join(f"{key}: {value}\n" for key, value in keys.items()) + path.read_text("utf-8"), encoding="utf-8"
    )


def test_the_multilingual_track_counts_bytes_over_the_premium_of_the_language(configuration: Path) -> None:
    rule = "the words of the corpus 'demo' are counted by the rule white_space, expected `word_count: adjusted` in its"
    with pytest.raises(ConfigError, match=f"{rule} file, with its `byte_premium`"):
        project(configuration, track="multilingual").check("experiment", "entry")
    counted(configuration, byte_premium="nld_latn", word_count="adjusted")
    found = project(configuration, track="multilingual")
    found.check("experiment", "entry")
    settings = Jobs(found).settings("pretrain", experiment="entry", run="ltg_bert-s42")
    assert budget(settings) == {"corpus_words": 100_000_000, "epochs": 10, "words_seen": 100_000_000}
    settings = Jobs(found).settings("encode_corpus", corpus="demo", tokenizer="demo")
    assert '"byte_premium":1.0516057,' in settings and '"word_count":"adjusted"' in settings
    # A strict track requires counts of words between white space.
    with pytest.raises(ConfigError, match="by the rule adjusted, expected `word_count: white_space` in its file"):
        project(configuration, track="strict").check("experiment", "entry")


def test_a_corpus_that_names_no_rule_is_encoded_as_before(configuration: Path) -> None:
    for keys in ({}, {"byte_premium": "nld_latn"}):
        counted(configuration, **keys)
        settings = Jobs(project(configuration)).settings("encode_corpus", corpus="demo", tokenizer="demo")
        assert json.loads(settings).keys() == {"stage", "stage_version"}


def test_the_chinese_track_counts_words_of_jieba_and_limits_the_text_alone(configuration: Path) -> None:
    with pytest.raises(ConfigError, match="expected `word_count: jieba` in its file"):
        project(configuration, track="chinese").check("experiment", "entry")
    counted(configuration, word_count="jieba")
    found = project(configuration, track="chinese", **pretraining(budget={"words_seen": "3000M"}))
    found.check("experiment", "entry")
    settings = Jobs(found).settings("pretrain", experiment="entry", run="ltg_bert-s42")
    assert budget(settings) == {"corpus_words": 100_000_000, "words_seen": 3_000_000_000}
    # Words and epochs of a teacher have no limit either.
    student = {"model": "ltg_demo", "pretraining": {"distillation": {"teachers": [{"run": "ltg_bert"}]}}}
    runs = {"ltg_bert": {"model": "ltg_demo"}, "student": student}
    project(configuration, track="chinese", runs=runs).check("experiment", "entry")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"word_count": "adjusted"},
            "byte_premium: the key is missing; `word_count: adjusted` divides the number of bytes by",
        ),
        ({"byte_premium": "{nobody: 1}"}, "byte_premium: got no premium for the source"),
    ],
)
def test_a_rule_without_its_premium_is_refused(configuration: Path, keys: dict[str, object], message: str) -> None:
    counted(configuration, **keys)
    with pytest.raises(ConfigError) as caught:
        project(configuration).check("experiment", "entry")
    assert message in str(caught.value)


def test_a_mixture_of_languages_is_held_to_the_adjusted_words_of_the_track(configuration: Path) -> None:
    dutch = {"sources": ["dutch"], "adjusted_words": "50M", "byte_premium": "nld_latn"}
    languages = {"english": {"sources": ["english"], "adjusted_words": "50M", "byte_premium": 1}, "dutch": dutch}

    def entry(mixed: Any = None, **changes: Any) -> Project:
        mixture = {"word_count": "adjusted", "sample": {"corpus": "both", "languages": {**languages, **changes}}}
        source = {"reader": "plain_text", "options": {"sentences": "line"}}
        both = {"sources": [{"name": name, "data": "babybabellm_nld", **source} for name in ("english", "dutch")]}
        blocks = {"corpora/both": both, "corpora/mixture": mixture | (mixed or {})}
        blocks["tokenizers/mixture"] = {"kind": "byte_bpe", "vocabulary_size": 400, "corpus": "mixture"}
        changed = {**LEGAL, "corpus": "mixture", "tokenizer": "mixture", "track": "multilingual"}
        return written(configuration, {**blocks, "experiments/entry": changed})

    found = entry()
    found.check("experiment", "entry")
    settings = Jobs(found).settings("pretrain", experiment="entry", run="ltg_bert-s42")
    assert budget(settings)["corpus_words"] == 100_000_000
    # Half of 543 MB and half of 571 MB; the premium of its language applies to each source.
    assert '"parts":{"dutch":{"bytes":285510947,"sources":["dutch"]},"english":{"bytes":271500000,' in Jobs(
        found
    ).settings("sample_corpus", corpus="mixture")
    settings = Jobs(found).settings("encode_corpus", corpus="mixture", tokenizer="mixture")
    assert json.loads(settings)["byte_premiums"] == {"dutch": 1.0516057, "english": 1.0}
    with pytest.raises(
        ConfigError, match=r"'mixture' have 100,000,001 adjusted words together, expected at most 100,0"
    ):
        entry(dutch=dutch | {"adjusted_words": 50_000_001}).check("experiment", "entry")
    with pytest.raises(
        ConfigError,
        match=r"languages\.dutch\.sources: got 'nl', expected a source of the corpus 'both': english, dutch",
    ):
        entry(dutch=dutch | {"sources": ["nl"]}).check("corpus", "mixture")
    with pytest.raises(
        ConfigError, match="languages: got the source 'english' in 2 languages, expected each source in one"
    ):
        entry(dutch=dutch | {"sources": ["english"]}).check("experiment", "entry")
    with pytest.raises(ConfigError, match=r"byte_premium: got 1\.0, which cannot be combined with `languages`"):
        entry(mixed={"byte_premium": 1}).check("experiment", "entry")


@pytest.mark.parametrize(("name", "megabytes"), [("nld", 571), ("zho", 537), ("eng_nld", 557), ("eng_nld_zho", 550)])
def test_the_shipped_corpora_use_the_track_up(repository: Path, name: str, megabytes: int) -> None:
    project = Project(repository / "config")
    corpus = project.corpus(f"babybabellm_{name}")
    project.check("corpus", f"babybabellm_{name}")
    assert corpus.word_count == TRACKS["multilingual"].word_count
    if corpus.made_from == "sample":
        assert 99_999_999 <= corpus.sample.adjusted_words <= 100_000_000
        n_bytes = sum(part.bytes for part in corpus.sample.languages.values())
    else:
        # The tier's size as its authors print it.
        n_bytes = int(1e8 * 5.43 * corpus.word_counting.premium("any"))
    assert n_bytes == pytest.approx(megabytes * 1e6, rel=2e-3)


def pretraining(**changes: Any) -> dict[str, Any]:
    return {"runs": {"ltg_bert": {"model": "ltg_demo", "pretraining": changes}}}


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "words": (
        pretraining(budget={"words_seen": "101M"}),
        "runs.ltg_bert.pretraining.budget.words_seen: got 101,000,000, expected at most 100,000,000",
    ),
    "submission": (
        {"submission": {"track": "strict"}},
        "expected the track of `submission`, strict",
    ),
    "epochs": (pretraining(budget={"epochs": 11.0}), "budget.epochs: got 11, expected at most 10"),
    "tokenizer": (
        {"tokenizer": "demo_parallel"},
        "the tokenizer 'demo_parallel' is trained on 'demo_parallel', expected the experiment's corpus 'demo'",
    ),
    "a second corpus": (
        {"tokenizer": {"kind": "byte_bpe", "vocabulary_size": 400, "corpora": ["demo", "demo_books"]}},
        "is trained on 'demo_books', expected the experiment's corpus 'demo'",
    ),
    "a folder": (
        pretraining(initialise_from={"path": "pretrained"}),
        "ltg_bert.pretraining.initialise_from.path: expected a `run`, because the training text",
    ),
    "held-out text": (
        {"tokenizer": {"kind": "byte_bpe", "vocabulary_size": 400, "splits": ["train", "dev", "test"]}},
        "is trained on held-out text, `splits` has dev and test; expected `splits: [train]`",
    ),
    "a vocabulary": (
        {"corpus": "demo_reduced", "tokenizer": "demo_reduced"},
        "the text of the corpus 'demo_reduced' is selected by the vocabulary 'demo' (selection 'demo_c4_sentences'), "
        "which is drawn from other text",
    ),
}
"""Experiments that break one rule, and the message that names the rule."""


@pytest.mark.parametrize(("changes", "rule"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_rule_is_named(configuration: Path, changes: dict[str, Any], rule: str) -> None:
    with pytest.raises(ConfigError) as caught:
        project(configuration, **changes).check("experiment", "entry")
    assert rule in str(caught.value)
    # Without a track, only rules that hold for any experiment are checked.
    if "initialise_from" not in rule:
        project(configuration, **changes, track=None).check("experiment", "entry")


@pytest.mark.parametrize(
    ("corpus", "allowed"), [("demo_unconstrained", True), ("demo_reduced", False), ("reduced_sample", False)]
)
def test_windows_are_drawn_without_a_vocabulary_and_samples_are_chosen_as_their_corpus_is(
    configuration: Path, corpus: str, allowed: bool
) -> None:
    sample = {"sample": {"corpus": "demo_reduced", "characters": 1000}}
    found = written(configuration, {"corpora/reduced_sample": sample})
    assert (vocabularies_in(corpus, found) == []) == allowed


def test_words_of_transcripts_may_choose_among_these_transcripts(configuration: Path) -> None:
    transcripts = {"embedded": "text", "options": {"format": "text"}}
    selection = {**transcripts, "level": "sentences", "vocabulary": "own"}
    corpus = {"sequences": {"groups": [{"level": "sentence", "selections": ["mine"]}]}}
    blocks = {"selections/mine": selection, "corpora/mine": corpus}
    other = written(configuration, blocks | {"vocabularies/own": {"embedded": "childes", "kind": "transcripts"}})
    assert vocabularies_in("mine", other) == [("own", "mine")]
    selection |= {"data": "shared"}
    del selection["embedded"]
    own = written(configuration, blocks | {"vocabularies/own": {"data": "shared", "kind": "word_list"}})
    assert vocabularies_in("mine", own) == []


def test_windows_of_a_corpus_and_every_group_of_a_corpus_depend_on_the_vocabularies_that_select_their_text(
    configuration: Path,
) -> None:
    windows = {"corpus": "demo_reduced", "level": "windows", "vocabulary": "demo", "windows_per_text": 4}
    groups = [
        {"level": "span", "selections": ["mine"]},
        {"level": "sentence", "selections": ["demo_wikipedia_sentences"]},
    ]
    of_windows, of_both = ({"sequences": {"groups": chosen}} for chosen in (groups[:1], groups))
    found = written(configuration, {"selections/mine": windows, "corpora/mine": of_windows, "corpora/both": of_both})
    selected = ["demo_c4_sentences", "demo_wikipedia_sentences", "demo_c4_spans"]
    assert vocabularies_in("mine", found) == [("demo", name) for name in selected]
    assert vocabularies_in("both", found) == [("demo", name) for name in (*selected, "demo_wikipedia_sentences")]


TRAINED = {"budget": {"words_seen": "50M"}}


def start(run: str, experiment: str | None = None) -> dict[str, Any]:
    return {"initialise_from": {"run": run} | ({"experiment": experiment} if experiment else {})}


def chain(folder: Path, first: dict[str, Any], last: dict[str, Any], **other: Any) -> Project:
    """Return a project with the run `entry/last`. It starts from `other/middle`, which has no steps and starts from
    `other/first`."""
    before = {"corpus": "demo", "tokenizer": "demo", "pretraining": {"batch_size": 32, **first}}
    middle = {"model": "ltg_demo", "pretraining": {"steps": 0, **start("first")}}
    before |= {"runs": {"first": {"model": "ltg_demo"}, "middle": middle}, **other}
    runs = {"last": {"model": "ltg_demo", "pretraining": {**last, **start("middle", "other")}}}
    return written(folder, {"experiments/other": before, "experiments/entry": {**LEGAL, "runs": runs}})


FAR = {"budget": {"words_seen": "101M"}}
OFTEN = {"budget": {"words_seen": "50M", "epochs": 11}}
FOLDER = {"steps": 0, "initialise_from": {"path": "pretrained"}}


@pytest.mark.parametrize(
    ("first", "last", "other", "rule"),
    [
        (TRAINED, {}, {}, ""),
        (TRAINED, {"steps": 0}, {"track": "strict_small"}, ""),
        # A run without steps must satisfy the rules of the runs that it starts from.
        (TRAINED, {"steps": 0}, {}, "because experiment other has no `track: strict_small`; add this key"),
        (
            {"steps": 5},
            {},
            {},
            "runs.last.pretraining.initialise_from: 'first' of other: pretraining: expected a `budget`",
        ),
        (FAR, {"steps": 0}, {}, "'first' of other: pretraining.budget.words_seen: got 101,000,000, expected at most"),
        (OFTEN, {}, {}, "'first' of other: pretraining.budget.epochs: got 11, expected at most 10"),
        (FOLDER, {}, {}, "'first' of other: pretraining.initialise_from.path: expected a `run`"),
        (TRAINED, {}, {"corpus": "demo_books", "tokenizer": "demo"}, "trains on 'demo_books', expected 'demo'"),
    ],
)
def test_a_track_follows_the_whole_chain_of_trainings(
    configuration: Path, first: dict[str, Any], last: dict[str, Any], other: dict[str, Any], rule: str
) -> None:
    found = chain(configuration, first, last, **other)
    if not rule:
        found.check("experiment", "entry")
        return
    with pytest.raises(ConfigError) as caught:
        found.check("experiment", "entry")
    assert rule in str(caught.value)


def test_marks_and_budgets_follow_words_through_a_run_without_steps(configuration: Path) -> None:
    found = chain(configuration, TRAINED, {}, track="strict_small")
    # 50 of 100 million words are spent, so the marks 60M to 100M remain.
    assert found.marks("entry", found.seeded_run("entry", "last-s42")) == tuple(range(60_000_000, 100_000_001, 10**7))
    kept = found.checkpoints("entry", "last-s42")
    assert [run.milestone for _, run in kept] == [f"chck_{number}0M" for number in range(6, 11)]
    with pytest.raises(ConfigError, match=r"got 50,000,000, expected more than 50,000,000, the budget of 'first'"):
        chain(configuration, TRAINED, {"budget": {"words_seen": "50M"}}).check("experiment", "entry")
    chain(configuration, TRAINED, {"budget": {"words_seen": 50_000_001}}).check("experiment", "entry")
    # A run that inherits a budget but has no steps spends no words.
    found = chain(configuration, {"steps": 0, **TRAINED}, {})
    assert len(found.marks("entry", found.seeded_run("entry", "last-s42"))) == 19


@pytest.mark.parametrize(
    ("given", "held"),
    [
        ({}, (10, 10_000_000, None)),
        ({"corpus_words": "10M"}, (10, 10_000_000, None)),
        ({"corpus_words": 9_999_999, "epochs": 9.5}, (9.5, 9_999_999, None)),
        ({"corpus_words": 10_000_001, "epochs": 10}, (10, 10_000_000, None)),
        ({"corpus_words": "200M", "corpus_bytes": 5}, (10, 10_000_000, 5)),
    ],
)
def test_the_smaller_of_two_limits_holds(
    configuration: Path, given: dict[str, Any], held: tuple[float, int, int | None]
) -> None:
    found = project(configuration, **pretraining(budget={"words_seen": "100M", **given}))
    found.check("experiment", "entry")
    budget = found.within_track("entry", found.experiment("entry").runs["ltg_bert"].pretraining.budget)
    assert (budget.epochs, budget.corpus_words, budget.corpus_bytes) == held
