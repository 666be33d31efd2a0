"""The tiny experiment runs from generated raw files to the page and the report; a second run gives the same bytes."""

import json
import math
import re
import shutil
from collections.abc import Callable
from importlib.metadata import packages_distributions
from pathlib import Path

import polars
import pytest
from forked import surroundings
from lxml import etree
from projects import rows_of, snakemake
from write_environments import canonical_name, read_groups

from hatchery.analysis.measurements import DEVELOPMENT_BITS
from hatchery.analysis.tidy_tables import RUNS
from hatchery.artifacts.manifests import read_manifest
from hatchery.evaluation.perplexity.rows import BITS_PER_BYTE
from hatchery.evaluation.sentences_file import read_examples
from hatchery.stage import Stage
from hatchery.tokenization.token_shards import TokenShards
from hatchery.workflow.registry import STAGES

pytestmark = pytest.mark.slow

# This sentence is the only date outside provenance, so two runs around midnight differ in it.
DAY = rb"The models were pretrained (on|from) [^.]*\."
TABLES = ("measurements", "runs", "curves")
COLUMNS = [
    *("experiment", "model", "suite", "task", "metric", "mean", "std", "n", "n_failed"),
    *("mean_without_failed", "n_without_number"),
    *("published_mean", "published_std", "published_source", "difference", "verdict", "manifests"),
    *("sampling_deviation", "blind_guess", "seeds", "basis"),
]


def test_the_summary_has_the_contracts_columns_and_a_row_for_every_model(finished_project: Path) -> None:
    rows = rows_of(finished_project / "results/tiny/summary.csv")
    assert list(rows[0]) == COLUMNS
    assert {row["model"] for row in rows} == {"random", "ltg_bert", "elc_bert", "roberta"}
    assert all(row["experiment"] == "tiny" for row in rows)
    finetuned = [row for row in rows if row["task"] == "demo_acceptability" and row["metric"].startswith("accuracy")]
    assert {int(row["n"]) + int(row["n_without_number"]) for row in finetuned} == {2}
    found = {(row["suite"], row["task"]) for row in rows if row["model"] == "elc_bert"}
    assert {("perplexity", "dev"), ("tiny_pairs", "paradigm_average"), ("demo_probing", "demo_probe_dp")} <= found
    hans = {"demo_hans", "demo_hans_as_published", "demo_hans_summed"}
    assert {task for _, task in found if task.startswith("demo_hans")} == hans


def test_runs_and_curves_have_the_bits_per_byte_of_the_measurements(finished_project: Path) -> None:
    tables = {name: polars.read_parquet(finished_project / f"results/tiny/{name}.parquet") for name in TABLES}
    measured = tables["measurements"].filter(polars.col("kind") == "pretraining", polars.col("metric") == BITS_PER_BYTE)
    expected = dict(measured.select("run", "value").iter_rows())
    assert len(expected) >= 2
    manifests = {
        found.digest: found for found in map(read_manifest, (finished_project / "results").rglob("manifest.json"))
    }
    for run, digest in measured.select("run", "manifest").iter_rows():
        # Bits per byte by hand: the last development loss per token, times the number of text tokens, over the bytes.
        tokens = manifests[manifests[digest].inputs["tokens"]]
        last = json.loads(manifests[digest].file("metrics.jsonl").read_text("utf-8").splitlines()[-1])
        shards = TokenShards.open(tokens.path, "dev")
        n_tokens = sum(int((document.ids >= len(shards.special.order)).sum()) for document in shards)
        files = sorted(manifests[tokens.inputs["corpus"]].path.parent.glob("dev-*.parquet"))
        lines = [line for path in files for text in polars.read_parquet(path)["text"] for line in text.splitlines()]
        n_bytes = sum(len(line.encode("utf-8")) for line in lines)
        assert expected[run] == pytest.approx(last["development_loss"] / math.log(2) * n_tokens / n_bytes, rel=1e-9)
    for name in ("runs", "curves"):
        found = tables[name].filter(polars.col(DEVELOPMENT_BITS).is_not_null())
        # In a curve, the last value counts.
        assert dict(found.select("run", DEVELOPMENT_BITS).iter_rows()) == expected


def test_every_manifest_vouches_for_its_files(finished_project: Path) -> None:
    manifests = sorted((finished_project / "results").rglob("manifest.json"))
    assert len(manifests) >= 12
    for path in manifests:
        read_manifest(path).verify()


def test_figures_are_drawings_and_the_page_holds_them(finished_project: Path) -> None:
    page = (finished_project / "results/tiny/index.html").read_text(encoding="utf-8")
    names = ("learning_curves", "layer_weights", "phenomena", "task_scores", "layer_contributions")
    for name in names:
        drawing = etree.parse(finished_project / f"results/tiny/figures/{name}.svg")
        assert drawing.getroot().tag.endswith("svg")
    assert page.count('<svg role="img"') == 2 * len(names)
    assert page.count('class="narrow"') == len(names), "each of them a second time for phones"
    for corpus in ("tiny", "demo_reduced", "demo_books_sample"):
        assert f'<a href="../cards/{corpus}/card.html">{corpus}</a>' in page
        assert (finished_project / f"results/cards/{corpus}/card.html").is_file()


def test_every_model_is_exported_with_its_scores_on_its_card(finished_project: Path) -> None:
    folder = finished_project / "results/tiny/export"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    models = sorted(path.name for path in folder.iterdir() if path.is_dir())
    assert models == ["elc_bert-s42", "ltg_bert-s42", "random-s42", "roberta-s42"]
    for name in models:
        assert name in listed
        card = (folder / name / "README.md").read_text(encoding="utf-8")
        assert card.startswith("---\n") and "paradigm_average" in card
        sentences = read_examples(finished_project / f"results/tiny/filled_sentences/{name}/manifest.json").examples
        assert sentences and sentences[0].original in card
        assert {"config.json", "model.safetensors", "tokenizer.json"} <= {
            path.name for path in (folder / name).iterdir()
        }


def test_no_unfinished_file_is_left_behind(finished_project: Path) -> None:
    assert not list((finished_project / "results").rglob("*.partial"))
    checkpoints = finished_project / "results/checkpoints"
    assert not checkpoints.exists() or not list(checkpoints.iterdir())


def test_the_tables_are_printed_at_the_end_of_the_run(finished_project: Path) -> None:
    (finished_project / "results/tiny/index.html").unlink()
    result = snakemake(finished_project, "--cores", "1", "results/tiny/index.html")
    assert result.returncode == 0, result.stderr
    assert (finished_project / "results/tiny/summary.txt").read_text(encoding="utf-8").strip() in result.stderr


def content(path: Path) -> bytes:
    """Return the content that must be equal in two runs."""
    if path.name in ("runs.parquet", "runs.sha256"):
        frame = polars.read_parquet(path.with_name("runs.parquet"))
        return frame.drop(column.name for column in RUNS.columns if column.measured_anew).write_ipc(None).getvalue()
    return re.sub(DAY, b"", path.read_bytes())


def test_two_runs_from_scratch_give_the_same_bytes(finished_project: Path, second_project: Path) -> None:
    compared = 0
    for path in sorted((finished_project / "results").rglob("*")):
        relative = path.relative_to(finished_project)
        names = ("provenance.json", "provenance.html", "provenance.sha256", "speed.jsonl")
        volatile = path.name in names or "benchmarks" in relative.parts
        if path.is_file() and not volatile:
            ours, theirs = (content(file) for file in (path, second_project / relative))
            assert ours == theirs, f"{relative} differs between two runs"
            compared += 1
    assert compared > 40


def test_servers_differ_in_the_seed_of_hashes(tmp_path: Path) -> None:
    """Sets have another order in the second project's jobs, so results that depend on a set's order differ."""
    words = [f"word {number}" for number in range(40)]
    (tmp_path / "Snakefile").write_text(f"print(*set({words}))\nrule:\n    shell: 'true'\n", encoding="utf-8")
    said = [snakemake(tmp_path, "--cores", "1", environment=surroundings(number)).stdout for number in (0, 0, 1)]
    assert said[0] == said[1] != said[2]


def test_a_damaged_shard_ends_in_one_line_that_names_it(finished_project: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(finished_project, project, symlinks=True)
    shard = sorted((project / "results/tokens").rglob("*.arrow"))[0]
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    result = snakemake(
        project, "--cores", "1", "--forcerun", "pretrain", "--", "results/tiny/pretraining/ltg_bert-s42/manifest.json"
    )
    assert result.returncode != 0
    lines = result.stderr.splitlines()
    assert lines[-1].startswith("error: pretrain/tiny/ltg_bert-s42: ")
    assert shard.name in lines[-1]
    # The command printed the first line when it failed; the second is the last line.
    assert sum(line.startswith("error: ") for line in [*result.stdout.splitlines(), *lines]) == 2
    assert not (project / "results/tiny/pretraining/ltg_bert-s42/manifest.json").exists()


WITH_A_MODEL = {"export_model", "fill_sentences", "import_checkpoint", "write_cost"}
# Modules whose import takes a fifth of a second or more, and the stages that may import them; pyarrow imports pandas if
# pandas is installed.
MAY_IMPORT: dict[str, Callable[[Stage], bool]] = {
    "torch": lambda stage: stage.runs_on in ("gpu", "gpus") or stage.name in WITH_A_MODEL,
    "torch._dynamo": lambda stage: False,
    "torch._inductor": lambda stage: False,
    "sympy": lambda stage: False,
    "deepspeed": lambda stage: stage.runs_on == "gpus",
    "transformers": lambda stage: stage.name == "import_model",
    "datasets": lambda stage: False,
    # Evaluations write their scores as polars' frames.
    "polars": lambda stage: stage.environment in ("analysis", "evaluation"),
    "matplotlib": lambda stage: stage.name == "draw_figure",
    "tokenizers": lambda stage: stage.environment in ("tokenization", "evaluation"),
    "scipy": lambda stage: stage.name in ("finetune", "finetune_tasks", "select_tokenizer", "analyse"),
    "sklearn": lambda stage: False,
    "nltk": lambda stage: False,
    "snakemake": lambda stage: False,
}
LISTED = {
    path.stem: set(re.findall(r"^ +([\w.-]+)==", path.read_text(encoding="utf-8"), re.MULTILINE))
    for path in (Path(__file__).parents[3] / "envs").glob("*.yaml")
}
# Packages that the library imports. Other packages import optional packages if they are installed.
OURS = {name for names in read_groups(Path(__file__).parents[3]).values() for name in names} - {"psutil"}
IMPORTED = re.compile(r"^import time: +\d+ \| +\d+ \| +([\w.]+)$", re.MULTILINE)


def test_no_job_imports_what_its_stage_has_no_use_for(second_project: Path) -> None:
    read, wrong = set(), []
    providers = {top: set(map(canonical_name, names)) for top, names in packages_distributions().items()}
    for stage in STAGES.values():
        for log in sorted((second_project / "logs" / stage.name).rglob("*.log")):
            imported = set(IMPORTED.findall(log.read_text(encoding="utf-8")))
            if imported:
                read.add(stage.name)
            wrong += [
                f"{stage.name}: {name}" for name, may in MAY_IMPORT.items() if name in imported and not may(stage)
            ]
            packages = set().union(*(providers.get(name, set()) for name in imported)) & OURS
            lacks = sorted(packages - LISTED[stage.environment])
            wrong += [f"{stage.name}: {name} is not in envs/{stage.environment}.yaml" for name in lacks]
    assert wrong == []
    made = {path.name for path in (second_project / "logs").iterdir()} & set(STAGES)
    assert read == made >= {"convert_corpus", "pretrain", "finetune", "score_minimal_pairs", "summarise", "write_page"}
