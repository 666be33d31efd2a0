"""One static page for an experiment, for somebody who was not there: what was asked, what came out, and from what.

Every number of ours is a link to its row on the page of provenance, which leads on to manifests and raw files. No
scripts, nothing loaded from elsewhere; the same results give the same bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hatchery.analysis.cards.tables import html_text
from hatchery.analysis.measurements import (
    PARADIGM_AVERAGE,
    PERPLEXITY_SUITE,
    PHENOMENON_AVERAGE,
    PRETRAINING_SUITE,
)
from hatchery.analysis.pages.corpora import corpora
from hatchery.analysis.pages.document import html_document
from hatchery.analysis.pages.figures import figure_of, read_text
from hatchery.analysis.pages.filled import filled_in
from hatchery.analysis.pages.links import address
from hatchery.analysis.pages.markdown import anchor, introductions, rendered, section_of
from hatchery.analysis.pages.numbers import VERDICTS, Key, Numbers, metric_name, name_of
from hatchery.analysis.pages.runs import pretrained_on, runs
from hatchery.analysis.settings import SeededRun, labels_of, models_in_order
from hatchery.analysis.summary_layout import readable
from hatchery.analysis.summary_rows import read_summary
from hatchery.analysis.task_averages import AVERAGE, AVERAGE_METRIC, RUN_AVERAGE_METRIC
from hatchery.storage.atomic import write_text
from hatchery.storage.manifests import read_manifest
from hatchery.storage.verified import vouched
from hatchery.typed import build, stage_body

TABLES_FILE = "tables.md"
_AVERAGES = (AVERAGE_METRIC, RUN_AVERAGE_METRIC)
_AVERAGE_TASKS = (AVERAGE, PHENOMENON_AVERAGE, PARADIGM_AVERAGE)
PAGE_STYLE = """
.runs, .published { font-size: .85em; }
.runs { opacity: .8; }
.best a { font-weight: 700; }
.filled span { font-size: .85em; opacity: .8; white-space: nowrap; }
.filled th[colspan] { font-weight: 600; padding-top: .8rem; }
.filled tbody + tbody { border-top: 0; }
.verdict { border-bottom: 2px solid; font-weight: 600; }
.verdict.within { border-color: #009e73; }
.verdict.above { border-color: #0072b2; }
.verdict.below { border-color: #d55e00; }
.verdict.not-comparable { border-bottom-style: dotted; font-weight: 400; }
caption { caption-side: top; font-weight: 600; padding: 0 0 .3rem; text-align: left; }
tbody th { font-weight: 400; }
.lead { font-size: 1.15rem; max-width: 50rem; }
.prose { max-width: 50rem; }
@media (max-width: 40rem) {
.runs { display: block; font-size: .9em; }
.published, .filled :is(th, td) { white-space: normal; }
}
"""


@dataclass(frozen=True)
class PageSettings:
    """What the page says in words; `runs` give the order of the models."""

    experiment: str
    description: str
    runs: tuple[SeededRun, ...] = ()


@dataclass(frozen=True)
class PageInputs:
    """What a page is composed of.

    `summary` is summary.csv, `markdown` summary.md with the notes on the numbers, `provenance` the page that every
    number leads to. `figures` are SVG files in their order, `cards` the manifests of corpus cards by corpus,
    `pretraining` the manifests of the models and `run_cards` their pages, by name; `tables` is the manifest of the
    tables of a paper, where the experiment repeats one. `filled` are the manifests of the sentences that the models
    filled in, by name; `cost` is the estimate of the cost as text.
    """

    summary: Path
    markdown: Path
    provenance: Path
    figures: Sequence[Path] = ()
    cards: Mapping[str, Path] = field(default_factory=dict)
    pretraining: Mapping[str, Path] = field(default_factory=dict)
    run_cards: Mapping[str, Path] = field(default_factory=dict)
    tables: Path | None = None
    filled: Mapping[str, Path] = field(default_factory=dict)
    cost: Path | None = None


@dataclass(frozen=True)
class _Section:
    title: str
    body: str

    @property
    def anchor(self) -> str:
        return f"section-{anchor(self.title)}"


def write_page(settings: Mapping[str, Any], inputs: PageInputs, output: Path) -> None:
    """Write the page of an experiment to `output`.

    Raises ConfigError for settings, EvaluationError for a table, text or figure, and ManifestError for a manifest that
    is missing or damaged, naming the file; then no page is written.
    """
    chosen = build(PageSettings, stage_body(settings))
    numbers = Numbers(read_summary(inputs.summary), address(inputs.provenance, output), labels_of(chosen.runs))
    markdown = read_text(vouched(inputs.markdown))
    candidates = [
        _Section("What was asked", _question(chosen, numbers, inputs)),
        _Section("Results at a glance", _headline(numbers)),
        _Section("Tables of the paper", _paper_tables(inputs.tables, output)),
        _Section("Figures", "\n".join(figure_of(path) for path in inputs.figures)),
        _Section("Try the models", filled_in(inputs.filled, chosen.runs)),
        _Section("All numbers", _all_numbers(numbers)),
        _Section("How to read the numbers", _notes(markdown)),
        _Section("Corpora", corpora(inputs.cards, output)),
        _Section("Pretraining runs", _runs(inputs, output)),
        _Section("Where the numbers come from", _origin(chosen.experiment, inputs, output)),
    ]
    sections = [section for section in candidates if section.body]
    links = "\n".join(f'<li><a href="#{part.anchor}">{html_text(part.title)}</a></li>' for part in sections)
    body = "\n".join(
        [
            f"<h1>{html_text(readable(chosen.experiment))}</h1>",
            f'<nav aria-label="Sections">\n<ul>\n{links}\n</ul>\n</nav>',
            *(
                f'<section aria-labelledby="{part.anchor}">\n<h2 id="{part.anchor}">{html_text(part.title)}</h2>\n'
                f"{part.body}\n</section>"
                for part in sections
            ),
        ]
    )
    write_text(output, html_document(f"Hatchery: {chosen.experiment}", body, PAGE_STYLE))


def _question(settings: PageSettings, numbers: Numbers, inputs: PageInputs) -> str:
    trained = models_in_order(settings.runs)
    others = [model for model in numbers.models if model not in trained] if trained else []
    suites = [readable(suite) for suite in numbers.suites if suite not in (PRETRAINING_SUITE, PERPLEXITY_SUITE)]
    sentences = [f"Compared are {_listed(map(numbers.label, trained or numbers.models))}"]
    if len(settings.runs) > len(trained):
        sentences[0] += f", pretrained {len(settings.runs)} times in all with different seeds"
    if others:
        sentences.append(f"Scored beside them, but pretrained elsewhere: {_listed(others)}")
    if suites:
        sentences.append(f"They are evaluated on {_listed(suites)}")
    if inputs.cards:
        sentences.append(f"Corpus: {next(iter(inputs.cards))}")
    if day := pretrained_on(inputs.pretraining.values()):
        sentences.append(f"The models were pretrained {day}")
    return (
        f'<p class="lead">{html_text(settings.description)}</p>\n'
        f'<p class="prose">{html_text(". ".join(sentences))}.</p>'
    )


def _headline(numbers: Numbers) -> str:
    keys = numbers.headline()
    if not keys:
        return ""
    verdicts = numbers.verdicts()
    text = "Averages of each suite: mean ± standard deviation over n runs; perplexity per labelled token, the rest in "
    text += "percent. The best number of a row is bold. Every number leads to the results that it was computed from."
    if verdicts:
        told = ", ".join(f"{verdicts[name]} {name}" for name in VERDICTS if verdicts[name])
        text += f" Of the {verdicts.total()} numbers of this page that have a published counterpart: {told}."
    return f'<p class="prose">{html_text(text)}</p>\n' + numbers.table("Suite averages", keys, list(map(name_of, keys)))


def _paper_tables(manifest: Path | None, page: Path) -> str:
    if manifest is None:
        return ""
    made = read_manifest(manifest)
    path = made.file(TABLES_FILE)
    latex = [f'<a href="{address(output, page)}">{html_text(output.name)}</a>' for output in made.files(suffix=".tex")]
    text = f"<p>As files: {', '.join([_file(path, page), *latex])}.</p>\n"
    return text + rendered(read_text(path), deeper=2, prefix="paper-")


def _all_numbers(numbers: Numbers) -> str:
    parts = []
    for suite in numbers.suites:
        keys = [key for key in numbers.keys if key[0] == suite]
        metrics = list(dict.fromkeys(metric for _, _, metric in keys))
        # Averages first, then the tasks metric by metric.
        metrics.sort(key=lambda metric: _AVERAGES.index(metric) if metric in _AVERAGES else len(_AVERAGES))
        keys.sort(key=lambda key: (key[1] not in _AVERAGE_TASKS, metrics.index(key[2])))
        averages = sum(key[1] in _AVERAGE_TASKS for key in keys)
        names = [_row_name(key, metrics) for key in keys]
        unit = f" ({metric_name(metrics[0])})" if len(metrics) == 1 else ""
        parts.append(f"<h3>{html_text(readable(suite) + unit)}</h3>")
        parts.append(numbers.table(readable(suite), keys, names, caption=False, averages=averages))
    return "\n".join(parts)


def _row_name(key: Key, metrics: Sequence[str]) -> str:
    _, task, metric = key
    if metric in _AVERAGES:
        return f"{readable(task)}, by {'task' if metric == AVERAGE_METRIC else 'run'}"
    return readable(task) if len(metrics) == 1 else f"{readable(task)}, {metric_name(metric)}"


def _notes(markdown: str) -> str:
    parts = [section_of(markdown, "Notes", deeper=1, prefix="notes-")]
    told = [f"<dt>{html_text(title)}</dt><dd>{html_text(text)}</dd>" for title, text in introductions(markdown)]
    if told:
        parts.append("<h3>By suite</h3>\n<dl>\n" + "\n".join(told) + "\n</dl>")
    compared = section_of(markdown, "Beside the published values", deeper=1, prefix="compared-")
    if compared:
        parts.append(
            f"<details><summary>Every comparison with a published value, with its notes</summary>\n{compared}</details>"
        )
    return "\n".join(filter(None, parts))


def _runs(inputs: PageInputs, page: Path) -> str:
    if not inputs.pretraining:
        return ""
    text = (
        "Each name leads to the run's card: settings, cost, curves, checkpoints, and where it ran. Each manifest leads "
    )
    text += "to what the run was made from."
    table = runs(inputs.pretraining, inputs.run_cards, inputs.provenance, page)
    return (f"<p>{text}</p>\n" if inputs.run_cards else "") + table


def _origin(experiment: str, inputs: PageInputs, page: Path) -> str:
    items = [
        f'<a href="{address(inputs.provenance, page)}">Provenance</a>: every number with its manifests, settings and '
        "raw files, and when and where each stage ran",
        f"The numbers themselves: {_file(inputs.summary, page)}; as text: {_file(inputs.markdown, page)}",
    ]
    if inputs.cost is not None:
        items.append(f"What each run was estimated to cost: {_file(inputs.cost, page)}")
    # These two are made when somebody asks for them, so a link could lead nowhere.
    name = html_text(experiment)
    items.append(
        f"All of this in one file, to pass on: <code>make report EXPERIMENT={name}</code> writes "
        "<code>report.html</code> beside this page"
    )
    items.append(
        "The models as folders for <code>transformers</code>: "
        f"<code>snakemake --cores 1 results/{name}/export/README.md</code> writes them and a list of them into "
        "<code>export/</code> beside this page"
    )
    return "<ul>\n" + "\n".join(f"<li>{item}</li>" for item in items) + "\n</ul>"


def _file(path: Path, page: Path) -> str:
    return f'<a href="{address(path, page)}">{html_text(path.name)}</a>'


def _listed(names: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = names
    # A name with a comma of its own would read like two.
    separator = "; " if any(", " in name for name in (*first, last)) else ", "
    return f"{separator.join(first)} and {last}" if first else last
