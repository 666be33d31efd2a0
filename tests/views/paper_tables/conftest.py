"""Experiments with one model per printed row; the models have the paper's scores."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from summary_text import write_rows_of_summary

from hatchery.analysis.published_values import MINUS, OVER, PublishedNumber, read_numbers
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.analysis.tidy_tables import LAYERS, MEASUREMENTS, write_rows
from hatchery.artifacts.checksums import write_checksums
from hatchery.artifacts.manifests import stage_run
from hatchery.typed import build
from hatchery.views.paper_tables.layout import OrderLayout, read_layout
from hatchery.views.paper_tables.order_table import order_table
from hatchery.views.paper_tables.printed import PrintedTable
from hatchery.views.paper_tables.settings import PaperTablesSettings, TableInputs
from hatchery.views.paper_tables.write_all import all_tables
from hatchery.views.score_table import PaperTable

TRACKS = [
    ("elc_bert", "strict"),
    ("elc_bert", "strict_small"),
    ("gpt_bert", "strict"),
    ("gpt_bert", "strict_small"),
    ("ltg_bert", ""),
]


class Toy:
    """An experiment with one model per printed row of a track; the models have exactly the printed scores."""

    def __init__(self, repository: Path, folder: Path, paper: str, track: str) -> None:
        self.repository, self.folder, self.paper, self.track = repository, folder, paper, track
        self.numbers = [n for n in self.all_numbers if n.track in ("", track)]
        self.rows = {f"our_{number.row}": number.row for number in self.numbers}

    @staticmethod
    def row(
        model: str,
        measure: Sequence[str],
        mean: float | None,
        std: float | None = None,
        n: int = 5,
        n_failed: int = 0,
        n_without_number: int = 0,
    ) -> SummaryRow:
        suite, task, metric = measure
        runs = (mean, std, n, n_failed, None, n_without_number)
        # Five pretraining seeds, so that our best numbers are bold like the paper's.
        return SummaryRow("toy", model, suite, task, metric, *runs, None, None, "", None, "", "", seeds=5)

    @property
    def published(self) -> Path:
        return self.repository / "config/published/values" / f"{self.paper}.csv"

    @property
    def layout(self) -> Path:
        return self.repository / "config/paper_tables" / f"{self.paper}.yaml"

    @property
    def all_numbers(self) -> list[PublishedNumber]:
        return read_numbers(self.published)

    def settings(self, **more: Any) -> dict[str, Any]:
        runs = [{"name": f"{model}-s{seed}", "model": model, "seed": seed} for model in self.rows for seed in (42, 43)]
        chosen = {"paper": self.paper, "track": self.track, "rows": self.rows}
        return {"experiment": "toy", "runs": runs, "published": chosen, **more}

    def summary_rows(self) -> list[SummaryRow]:
        rows: dict[tuple[str, ...], SummaryRow] = {}
        for number in self.numbers:
            if MINUS in number.metric or OVER in number.metric or number.suite in ("leaderboard",):
                continue
            measure = (number.suite, number.task, number.metric)
            rows.setdefault(
                (f"our_{number.row}", *measure), self.row(f"our_{number.row}", measure, number.value, number.spread)
            )
        return [rows[key] for key in sorted(rows)]

    def inputs(self, rows: Sequence[SummaryRow] | None = None) -> TableInputs:
        self.folder.mkdir(parents=True, exist_ok=True)
        summary = write_rows_of_summary(self.folder, list(self.summary_rows() if rows is None else rows))
        write_checksums([summary])
        measurements, layers = (self.folder / f"{name}.parquet" for name in ("measurements", "layers"))
        write_rows(measurements, MEASUREMENTS, [])
        shares = {
            (f"our_{number.row}", number.task, int(layer[1])): number.value
            for number in self.numbers
            if (layer := re.fullmatch(r"layer_(\d\d)_percent", number.metric))
        }
        write_rows(layers, LAYERS, self.probes(shares))
        with stage_run(self.folder / "card/manifest.json", {}) as run:
            card = run.add_output(run.folder / "statistics.csv")
            card.write_text("source,split,documents,subwords\n(all),train,4013,\nbnc,train,4013,\n", encoding="utf-8")
        sizes: dict[str, dict[str, float]] = {}
        for number in self.numbers:
            if number.row == "task_sizes":
                sizes.setdefault(number.task, {})[number.metric] = number.value
        return TableInputs(
            summary=summary,
            published=self.published,
            layout=self.layout,
            measurements=measurements,
            layers=layers,
            sizes=self.repository / "config/published/corpora/sizes.csv",
            cards={"bnc": card},
            tasks={task: self.tuned(task, printed) for task, printed in sizes.items()},
        )

    def tuned(self, task: str, printed: Mapping[str, float], max_length: int = 512) -> Path:
        """Return a fine-tuning manifest with the printed numbers of rows, of which the printed share is truncated."""
        rows = {name: int(printed[name]) for name in ("train_rows", "validation_rows")}
        cut = round(sum(rows.values()) * printed["at_least_512_subwords_percent"] / 100)
        with stage_run(self.folder / task / "manifest.json", {"protocol": {"max_length": max_length}}) as run:
            validation = min(cut // 2, rows["validation_rows"])
            cut_rows = {"truncated_train_rows": cut - validation, "truncated_validation_rows": validation}
            run.measures |= rows | cut_rows
        return run.folder / "manifest.json"

    @staticmethod
    def probes(shares: Mapping[tuple[str, str, int], float]) -> list[dict[str, Any]]:
        """Return rows of the layer table for shares in percent by model, task and layer."""
        same = {"experiment": "toy", "quantity": "probe_share", "finetuning_seed": 1, "learning_rate": 0.1, "span": "0"}
        return [
            same | {"model": model, "run": f"{model}-s42", "task": task, "layer": layer, "value": percent / 100}
            for (model, task, layer), percent in shares.items()
        ]

    def orders(self) -> Iterator[PaperTable]:
        """Yield the order tables for clearly separated scores; later rows are better."""
        settings = build(PaperTablesSettings, self.settings())
        for number, layout in read_layout(self.layout).tables.items():
            if isinstance(layout, OrderLayout):
                scores = {
                    f"our_{entry.row}": [index + 0.1 * run for run in range(5)]
                    for index, entry in enumerate(layout.block.rows)
                    if f"our_{entry.row}" in self.rows
                }
                printed = PrintedTable(self.all_numbers, self.paper, number)
                yield order_table(number, layout, settings, printed, scores, {})

    def made(self, rows: Sequence[SummaryRow] | None = None, **settings: Any) -> dict[str, PaperTable]:
        """Return the tables by number, of all printed rows or of `rows`."""
        tables, _ = all_tables(build(PaperTablesSettings, self.settings(**settings)), self.inputs(rows))
        return {table.number: table for table in tables}

    def tables(self) -> dict[str, PaperTable]:
        return self.made() | {table.number: table for table in self.orders() if table.has_ours}


@pytest.fixture(scope="module")
def drawn(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, PaperTable]]:
    """Tables of the toy experiments by track and number."""
    return {track: Toy(repository, tmp_path_factory.mktemp("toy"), *track).tables() for track in TRACKS}


@pytest.fixture(params=TRACKS, ids="-".join)
def track(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param


@pytest.fixture
def strict(repository: Path, tmp_path: Path) -> Toy:
    return Toy(repository, tmp_path / "toy", "elc_bert", "strict")


@pytest.fixture
def bnc(repository: Path, tmp_path: Path) -> Toy:
    return Toy(repository, tmp_path / "toy", "ltg_bert", "")


@pytest.fixture
def small(repository: Path, tmp_path: Path) -> Toy:
    return Toy(repository, tmp_path / "toy", "elc_bert", "strict_small")
