"""The stage that exports a model: its folder, its model card, refused inputs, and the list of exported models."""

import json
import re
import resource
import subprocess
from dataclasses import replace
from pathlib import Path

import forked
import pytest
import torch
import yaml
from huggingface_hub import ModelCard
from safetensors.torch import load_file
from stage_command import stage_command
from summary_text import write_summary
from tokenizers import Tokenizer as Backend

from hatchery.analysis.summary_rows import SummaryRow, read_summary
from hatchery.artifacts.checksums import sha256_file, write_checksums
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.errors import ConfigError, ManifestError, ModelError
from hatchery.evaluation.sentences_file import GAP, Answer, FilledSentence, FilledSentences
from hatchery.export.model_folder import write_model_folder
from hatchery.export.settings import DataSource, ExportSettings
from hatchery.export.stages.export_model import export_model
from hatchery.export.stages.list_exported_models import list_exported_models
from hatchery.export.write_export import ModelFacts, generation_settings, licence_statement, model_card
from hatchery.modeling.store import load_language_model
from hatchery.rendering.hub_metadata import licence_id
from hatchery.runner import run_stage
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.typed import build, stage_body


@pytest.fixture
def summary(tmp_path: Path) -> Path:
    rows = [
        ("elc", "pretraining", "development", "perplexity", "41.25", "1.5", 2, 0, 0, ""),
        ("elc", "blimp", "phenomenon_average", "accuracy_percent", "71.125", "0.5", 2, 0, 0, "80.1"),
        ("elc", "finetuning", "rte", "f1_percent", "", "", 0, 0, 2, ""),
        ("other", "blimp", "phenomenon_average", "accuracy_percent", "13.37", "", 1, 0, 0, ""),
    ]
    lines = [
        ",".join(map(str, ("demo", *key, mean, std, n, failed, "", missing, published)))
        for *key, mean, std, n, failed, missing, published in rows
    ]
    return write_summary(tmp_path, lines)


def code_of(card: str) -> str:
    return card.split("```python\n")[1].split("\n```\n")[0]


def front_matter(card: str) -> dict[str, object]:
    _, block, _ = card.split("---\n", 2)
    return yaml.safe_load(block)


def test_the_folder_holds_what_the_manifest_names_and_the_weights_of_pretraining(
    pretrained, export_settings, exported_files, summary, tmp_path
):
    output = tmp_path / "export" / "manifest.json"
    run_stage(export_model, export_settings, output, pretraining=pretrained("ltg"), summary=summary)
    manifest = read_manifest(output)
    manifest.verify()
    assert {path.name for path in manifest.files()} == exported_files
    ours = load_file(pretrained("ltg").parent / "model.safetensors")
    theirs = load_file(output.parent / "model.safetensors")
    assert {name.removeprefix("model."): tensor.tolist() for name, tensor in theirs.items()} == {
        name: tensor.tolist() for name, tensor in ours.items()
    }
    assert manifest.measures["parameters"] == sum(tensor.numel() for tensor in ours.values())


def test_two_exports_are_the_same_to_the_byte(pretrained, export_settings, summary, tmp_path):
    digests = set()
    for name in ("one", "two"):
        output = tmp_path / name / "manifest.json"
        run_stage(export_model, export_settings, output, pretraining=pretrained("elc_zero"), summary=summary)
        digests.add(read_manifest(output).digest)
    assert len(digests) == 1


def test_the_card_says_what_the_files_say(pretrained, export_settings, summary, tmp_path):
    run_stage(export_model, export_settings, tmp_path / "manifest.json", pretraining=pretrained("ltg"), summary=summary)
    card = (tmp_path / "README.md").read_text()
    name = card.split("\n# ")[1].split("\n")[0]
    assert front_matter(card) == {
        "license": "other",
        "license_name": "terms-of-the-sources",
        "license_link": "README.md",
        "library_name": "transformers",
        "pipeline_tag": "fill-mask",
        "tags": ["fill-mask", "masked-lm", "custom_code", "hatchery"],
        "datasets": ["a/tales"],
        "metrics": ["accuracy", "f1", "perplexity"],
        "model-index": [
            {
                "name": name,
                "results": [
                    {
                        "task": {"type": "fill-mask"},
                        "dataset": {"name": suite, "type": suite, "config": part},
                        "metrics": [{"type": kind, "name": metric, "value": value}],
                    }
                    for suite, part, kind, metric, value in (
                        ("pretraining", "development", "perplexity", "perplexity", 41.25),
                        ("blimp", "phenomenon_average", "accuracy", "accuracy_percent", 71.12),
                    )
                ],
            }
        ],
    }
    # The hub's library reads these numbers from the card.
    assert [found.metric_value for found in ModelCard(card).data.eval_results] == [41.25, 71.12]
    assert "| tales | CC BY 4.0 | any use \\| with attribution | a/tales |" in card
    assert "| blimp | phenomenon_average | accuracy_percent | 71.12 | 0.50 | 2 | 80.10 |" in card
    assert "| finetuning | rte | f1_percent | - | - | 0, 2 more without a number | - |" in card
    assert "13.37" not in card, "the row of another model"
    assert "pretraining seeds 7, 8" in card and "5 steps and 12,345 tokens" in card
    assert "| `objective.kind` | span |" in card and "| `hidden_size` | 24 |" in card
    assert read_manifest(pretrained("ltg")).digest in card
    assert sha256_file(pretrained("ltg").parent / "model.safetensors") in card
    parameters = sum(p.numel() for p in load_language_model(pretrained("ltg").parent).parameters())
    assert f"{parameters:,} parameters" in card
    assert "the input length is not limited" in card


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        ("roberta_tied", "at most 64 tokens"),
        ("hybrid_ltg", "prediction of a masked token is at the position before this token"),
    ],
)
def test_the_example_of_the_card_runs(hub, exported, variant, said, monkeypatch, capsys):
    folder = exported(variant)
    card = (folder / "README.md").read_text()
    assert said in " ".join(card.split())
    monkeypatch.chdir(folder)
    exec(compile(code_of(card), "card", "exec"), {})
    # Version 4 of `transformers` imports DeepSpeed, which logs to the standard output.
    lines = [line for line in capsys.readouterr().out.splitlines() if "[WARNING]" not in line]
    assert len(lines) == 5 if variant == "roberta_tied" else any(line.strip() for line in lines)


def test_a_checkpoint_has_its_own_weights_scores_and_name(pretrained, export_settings, tmp_path):
    rows = [
        ("elc", "blimp", "phenomenon_average", "71.125", "0.5"),
        ("elc-chck_1M", "blimp", "phenomenon_average", "33.25", "0.75"),
        ("elc-chck_2M", "blimp", "phenomenon_average", "44.75", "0.25"),
        ("other-chck_2M", "blimp", "phenomenon_average", "55.75", "0.35"),
    ]
    lines = [
        f"demo,{model},{suite},{task},accuracy_percent,{mean},{std},2,0,,0," for model, suite, task, mean, std in rows
    ]
    inputs = {"pretraining": pretrained("elc_zero"), "summary": write_summary(tmp_path, lines)}
    checkpoints = {"chck_1M": pretrained("ltg"), "chck_2M": pretrained("elc_biased")}
    run_stage(export_model, export_settings, tmp_path / "out/manifest.json", **inputs, checkpoints=checkpoints)
    cards, weights = {}, {}
    for name in ("", "branches/chck_1M", "branches/chck_2M"):
        cards[name] = (tmp_path / "out" / name / "README.md").read_text(encoding="utf-8")
        weights[name] = load_file(tmp_path / "out" / name / "model.safetensors")[
            "model.encoder.embedding.word_embedding.weight"
        ]
    named = ("71.12 | 0.50", "33.25 | 0.75", "44.75 | 0.25")
    assert [[score in card for score in named] for card in cards.values()] == [
        [True, False, False],
        [False, True, False],
        [False, False, True],
    ]
    assert not any("55.75" in card for card in cards.values()), "the row of another model"
    assert [
        card.split("\n# ")[1].splitlines()[0].endswith("elc-s7" + end)
        for card, end in zip(cards.values(), ("", "-chck_1M", "-chck_2M"), strict=True)
    ] == [True] * 3
    for name, model in {"": "elc_zero", "branches/chck_1M": "ltg", "branches/chck_2M": "elc_biased"}.items():
        ours = load_file(pretrained(model).parent / "model.safetensors")
        assert torch.equal(weights[name], ours["encoder.embedding.word_embedding.weight"])
    measures = read_manifest(tmp_path / "out/manifest.json").measures
    assert list(measures["scores"].values()) == [71.125]
    assert measures["licence"] == "other"


def test_the_numbers_of_examples_and_the_direction_of_a_translation_are_those_of_the_files(export_settings, summary):
    settings = build(ExportSettings, {**stage_body(export_settings), "languages": ["de", "en"]})
    facts = ModelFacts(
        "tiny", 1234, {}, {"objective": {"direction": "backward"}}, {}, {}, 30, "[MASK]", ("translation",)
    )
    assert "from `en` into `de`" in model_card(settings, facts, [])
    forward = replace(facts, training={"objective": {}})
    assert "from `de` into `en`" in model_card(settings, forward, [])
    answers = (Answer("кот", 41.26), Answer("猫", 8.04), Answer("cat"))
    written = FilledSentences("fill", (FilledSentence(f"The {GAP} sleeps.", "dog", answers),))
    card = model_card(settings, replace(facts, kinds=("masked",), training={}), [], written)
    assert "| The \\_\\_\\_\\_ sleeps. | dog | кот (41.3 %) | 猫 (8.0 %) | cat |" in card
    assert "1,234 parameters" in card
    english = build(ExportSettings, {**stage_body(export_settings), "languages": ["de", "en"]})
    score = SummaryRow(**(vars(read_summary(summary)[1]) | {"metric": "chrf"}))
    for kinds, task, kind, example in (
        (("translation",), "translation", "encoder-decoder", "..."),
        (("causal",), "text-generation", "causal-lm", "The dogs"),
        (("masked", "causal"), "text-generation", "causal-lm", "The dogs"),
        (("masked",), "fill-mask", "masked-lm", "The dogs [MASK] near the house."),
    ):
        text = model_card(english, replace(facts, kinds=kinds), [score])
        found = front_matter(text)
        assert found["pipeline_tag"] == task and found["tags"] == [task, kind, "custom_code", "hatchery"]
        assert found["model-index"][0]["results"][0]["task"] == {"type": task} and found["metrics"] == ["chrf"]
        assert json.dumps(example) in code_of(text)


def test_generation_searches_as_the_training_evaluated(pretrained, tokenizers):
    manifest = read_manifest(pretrained("translation"))
    search = {"beam": 3, "length_factor": 2.0, "extra_length": 1}
    changed = replace(manifest, settings={**manifest.settings, "objective": {"task": "translation", "search": search}})
    found = generation_settings(changed, load_tokenizer(tokenizers["encoder_decoder"]))
    # A source has at most 29 tokens and its end token. Start, padding and mask are never written.
    assert (found["num_beams"], found["max_new_tokens"], found["suppress_tokens"]) == (3, 2 * 29 + 1, [0, 1, 4])


def test_scores_of_one_seed_are_no_mean_over_seeds(export_settings, summary):
    facts = ModelFacts("tiny", 1, {}, {}, {"steps": 0}, {}, None, "[MASK]", ("masked",))
    for seeds, said in (([7], "Mean scores of pretraining seed 7,"), ([7, 8], "over the pretraining seeds 7, 8,")):
        settings = build(ExportSettings, {**stage_body(export_settings), "seeds": seeds})
        card = model_card(settings, facts, read_summary(summary))
        assert said in card and "**The model was not trained**" in card
    assert "not trained" not in model_card(settings, replace(facts, measures={"steps": 1}), [])


def test_a_run_of_a_sweep_is_called_by_what_differs(pretrained, export_settings, tmp_path):
    settings = {**export_settings, "run": {**export_settings["run"], "label": "elc, learning_rate 0.005"}}
    run_stage(export_model, settings, tmp_path / "manifest.json", pretraining=pretrained("ltg"))
    expected = "The model `elc` (elc, learning_rate 0.005) (pretraining seed 7) of the experiment tiny."
    assert expected in (tmp_path / "README.md").read_text()


def test_a_sentence_of_the_corpus_steers_no_editor_and_ends_no_example(export_settings):
    settings = build(ExportSettings, stage_body(export_settings))
    facts = ModelFacts("tiny", 1, {}, {}, {}, {}, None, "[MASK]", ("masked",))
    example = FilledSentence(f'"); import os\n```\n\x1b[2J\u202e({GAP} near\x9b', "dogs", (Answer("cats"),))
    written = FilledSentences("fill", (example,))
    code = code_of(model_card(settings, facts, [], written))
    (loop,) = [line for line in code.splitlines() if line.startswith("for guess in fill(")]
    text = json.loads(loop.removeprefix("for guess in fill(").removesuffix("):"))
    assert text == '"); import os\n```\n\ufffd[2J\ufffd([MASK] near\ufffd'


def test_the_card_names_the_versions_of_transformers_that_the_tests_load_it_with(exported, repository):
    locks = [repository / name for name in ("tests/export/transformers-4.lock", "requirements.lock")]
    locked = [re.search(r"^transformers==(\S+)", lock.read_text(), re.MULTILINE)[1] for lock in locks]
    assert f"`transformers` {' and '.join(locked)}." in (exported("ltg") / "README.md").read_text()


def test_the_card_names_what_the_library_asks_for_to_train(hub, exported, tmp_path):
    try:
        hub.TrainingArguments(str(tmp_path), use_cpu=True)
    except ImportError as error:
        assert "accelerate" in str(error)
    card = (exported("ltg") / "README.md").read_text(encoding="utf-8")
    assert "The `Trainer` of `transformers` also needs `accelerate`" in card


def test_without_a_summary_the_card_says_so(exported):
    assert "The model was not evaluated." in (exported("ltg") / "README.md").read_text()


@pytest.mark.parametrize(
    ("licences", "identifier", "words"),
    [
        (["Apache-2.0", "Apache-2.0"], "apache-2.0", "and so is the model"),
        (["CC BY 4.0", "CC BY-SA 3.0 and GFDL"], "other", "no further licence is granted"),
        (["CC BY 4.0", ""], "unknown", "The licence of source_1 is unknown"),
        (["none; the books stay under their authors' copyright"], "unknown", "The licence of source_0 is unknown"),
        (["not stated by the collection", "Apache-2.0"], "unknown", "before you distribute the model"),
        (["CC BY 4.0", "Apache-2.0"], "other", "licences and terms in the table above"),
        (["BNC User Licence"], "other", "licences and terms in the table above"),
        ([], "unknown", "Nothing is known about the training data"),
    ],
)
def test_no_licence_is_made_up(licences, identifier, words):
    sources = [DataSource(f"source_{index}", licence) for index, licence in enumerate(licences)]
    assert licence_id(licences) == identifier
    assert words in licence_statement(sources)


def test_a_tokenizer_without_a_frame_gets_one(pretrained, tokenizers, tmp_path):
    definition = json.loads(tokenizers["ltg"].read_text("utf-8"))
    definition["post_processor"] = None
    path = tmp_path / "published.json"
    path.write_text(json.dumps(definition), "utf-8")
    write_model_folder(tmp_path / "out", load_language_model(pretrained("ltg").parent), ("masked",), path)
    written = Backend.from_file(str(tmp_path / "out" / "tokenizer.json"))
    assert written.encode("dogs").tokens[0] == "[CLS]" and written.encode("dogs").tokens[-1] == "[SEP]"
    assert Backend.from_file(str(path)).encode("dogs").ids == written.encode("dogs").ids[1:-1]


def test_a_limit_on_positions_is_told_to_the_tokenizer(exported):
    limits = {}
    for variant in ("ltg", "absolute_post_norm_gelu", "roberta_tied"):
        limits[variant] = json.loads((exported(variant) / "tokenizer_config.json").read_text())["model_max_length"]
    assert limits == {"ltg": int(1e30), "absolute_post_norm_gelu": 64, "roberta_tied": 64}


def test_a_tokenizer_that_does_not_belong_to_the_model_is_refused(pretrained, tokenizers, tmp_path):
    model = load_language_model(pretrained("roberta_tied").parent)
    with pytest.raises(ModelError, match="padding id is 3, the model expects 1"):
        write_model_folder(tmp_path, model, ("masked",), tokenizers["ltg"])


def test_unusable_inputs_are_named(pretrained, export_settings, summary, tmp_path):
    output = tmp_path / "o" / "manifest.json"
    files = {"pretraining": pretrained("ltg"), "summary": summary}
    with pytest.raises(ConfigError, match=r"export\.seeds"):
        run_stage(export_model, {**export_settings, "seeds": [8, 9]}, output, **files)
    with pytest.raises(ManifestError, match=r"nowhere\.json"):
        run_stage(export_model, export_settings, output, **{**files, "pretraining": tmp_path / "nowhere.json"})
    summary.write_bytes(summary.read_bytes()[:-1] + b"?")
    with pytest.raises(ManifestError, match=r"summary\.parquet: has the SHA-256 \w{16}, expected"):
        run_stage(export_model, export_settings, output, **files)
    write_checksums([summary])
    with pytest.raises(ManifestError, match=r"summary\.parquet: not a readable Parquet file"):
        run_stage(export_model, export_settings, output, **files)
    assert not output.exists()


def test_the_commands_export_and_list(pretrained, export_settings, summary, tmp_path):
    def command(*given, **more) -> None:
        forked.run(stage_command(*given, **more), check=True, capture_output=True, text=True)

    output, page = tmp_path / "elc-s7" / "manifest.json", tmp_path / "README.md"
    command("export_model", export_settings, output, pretraining=pretrained("elc_biased"), summary=summary)
    listing = {"stage": "list_exported_models", "stage_version": 1, "experiment": "tiny", "description": ""}
    command("list_exported_models", {**listing, "runs": ["elc-s7"]}, page, model={"elc-s7": output})
    text = page.read_text()
    parameters = read_manifest(output).measures["parameters"]
    assert f"| [elc-s7](elc-s7/README.md) | {parameters:,} |" in text
    assert "blimp: phenomenon average" in text and "| 71.12 | 41.25 |" in text
    with pytest.raises(ConfigError, match="model: got"):
        run_stage(list_exported_models, {**listing, "runs": ["a"]}, page, model={"elc-s7": output})


def test_the_list_has_a_row_for_each_model_with_its_size_licence_and_scores(tmp_path):
    models = {}
    for name, size, measures in (
        ("b-s1", 5_300_000, {"parameters": 1_325_000, "licence": "other", "scores": {"BLiMP": 61.257, "GLUE": 50.0}}),
        ("a-s1", 40_000, {"parameters": 10_000, "licence": "apache-2.0", "scores": {"COMPS": 3.5}}),
    ):
        with stage_run(tmp_path / name / "manifest.json", {"stage": "x"}) as run:
            path = run.add_output(run.folder / "model.safetensors")
            path.write_bytes(bytes(size))
            run.measures.update(measures)
        models[name] = tmp_path / name / "manifest.json"
    settings = {"stage": "list_exported_models", "stage_version": 1, "experiment": "tiny", "description": ""}
    run_stage(list_exported_models, {**settings, "runs": ["b-s1", "a-s1"]}, tmp_path / "README.md", model=models)
    lines = [line for line in (tmp_path / "README.md").read_text().splitlines() if line.startswith("|")]
    assert lines[0] == "| model | parameters | weights (MB) | licence | BLiMP | GLUE | COMPS |"
    assert lines[2:] == [
        "| [b-s1](b-s1/README.md) | 1,325,000 | 5.3 | other | 61.26 | 50.00 | - |",
        "| [a-s1](a-s1/README.md) | 10,000 | 0.0 | apache-2.0 | - | - | 3.50 |",
    ]


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors"])
def test_a_file_that_cannot_be_written_whole_is_named_in_one_line(
    name: str, pretrained, exported, export_settings, tmp_path: Path
) -> None:
    # A limit on file sizes replaces a full disk: for the libraries, both are a failed write.
    most_bytes = (exported("weights_larger_than_code") / name).stat().st_size - 1
    output = tmp_path / "model" / "manifest.json"
    outcome = subprocess.run(
        stage_command("export_model", export_settings, output, pretraining=pretrained("weights_larger_than_code")),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 1
    [line] = outcome.stderr.splitlines()
    remedy = "the file exceeds the limit on the size of files (ulimit -f)"
    assert line.startswith(f"error: {output.parent / name}: File too large; {remedy}")
    assert not output.exists()
    assert not list(output.parent.glob(".*"))
