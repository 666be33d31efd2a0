"""The stage `select_tokenizer`: run a sweep of tokenizers, and write a table and a figure of the results."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.errors import ConfigError
from hatchery.job_spec import Paths
from hatchery.stage import Stage
from hatchery.tokenization.selection.settings import (
    MORPHEME_FILE,
    TOKENIZER_FILE,
    CandidateKeys,
    SweepKeys,
    SweepSettings,
)
from hatchery.tokenization.trainer_settings import TokenizerSettings
from hatchery.typed import keys_of, validated

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.raw.registration import RawSource
    from hatchery.workflow.outputs import Outputs


def sweep_settings(project: "Project", sweep: str) -> dict[str, object]:
    """Return the settings of a sweep of tokenizers.

    Raises ConfigError if a tokenizer sets `vocabulary_size`, which the sweep varies.
    """
    block = project.tokenizer_sweep(sweep)
    types = []
    for name, entry in block.types.items():
        where = f"{project.place('tokenizer_sweep', sweep)}: types.{name}.definition"
        if "vocabulary_size" in entry.definition:
            raise ConfigError(f"{where}: vocabulary_size: expected no value, because the sweep sets this key")
        trained = validated(TokenizerSettings, {**entry.definition, "vocabulary_size": entry.sizes[0]}, where)
        rest = keys_of(entry, only=CandidateKeys)
        types.append({"name": name, "definition": keys_of(trained, "vocabulary_size"), **rest})
    return {"name": sweep, **keys_of(block, only=SweepKeys), "types": types}


def files_read(settings: Mapping[str, Any], name: str, source: "RawSource") -> Iterable[str]:
    """Return those files of the raw input `name` that the sweep of tokenizers reads: the list of morphemes, or a
    reference tokenizer.
    """
    return [source.one_name(MORPHEME_FILE) if name == "morphemes" else source.one_name(*TOKENIZER_FILE)]


def sweep_inputs(of: "Outputs", sweep: str) -> dict[str, Paths]:
    """Return the corpus manifest and the raw inputs that the sweep names: morphemes, reference tokenizers, published
    values.
    """
    block = of.project.tokenizer_sweep(sweep)
    references = {name: entry.reference for name, entry in block.types.items() if entry.reference is not None}
    return {
        "corpus": of.corpus(block.corpus),
        "morphemes": of.source(block.morphemes_data),
        "reference": {name: of("register_source", source=data) for name, data in references.items()},
        "published": [] if block.published is None else [f"config/published/tokenizers/{block.published}.csv"],
    }


@Stage(
    version=1,
    settings=sweep_settings,
    inputs=sweep_inputs,
    outputs={
        "manifest": "results/tokenizer_sweeps/{sweep}/manifest.json",
        "csv": "results/tokenizer_sweeps/{sweep}/selection.csv",
        "markdown": "results/tokenizer_sweeps/{sweep}/selection.md",
        "tokenizer": "results/tokenizer_sweeps/{sweep}/tokenizer.json",
        "figure": "results/tokenizer_sweeps/{sweep}/tokenizer_sweep.svg",
    },
    input_names={"reference": "reference {}"},
    files_read=files_read,
    environment="tokenization",
    runs_on="cpu",
    threads="corpus",
    memory_mb=8000,
    memory_mb_per_thread=2000,
    minutes=1440,
)
def select_tokenizer(
    settings: SweepSettings,
    corpus: Manifest,
    reference: Mapping[str, Path],
    morphemes: Path | None,
    run: StageRun,
    published: Path | None = None,
    threads: int = 1,
) -> None:
    """Train and measure the tokenizers of the sweep `settings`, and write a table and a figure of the results.

    `reference` maps tokenizer types to manifests of reference tokenizers, and `morphemes` is the manifest of a list of
    morphemes. `published` is a file of published values. Raises ConfigError, SourceError, CorpusError or
    TokenizationError if the settings or inputs make the sweep impossible.
    """
    import shutil

    from hatchery.rendering.drawing import figure_style, save_svg
    from hatchery.rendering.style import Style
    from hatchery.tokenization.selection.sweep import sweep_tokenizers
    from hatchery.views.tokenizer_sweep import draw_tokenizer_sweep, selection_markdown

    sweep = sweep_tokenizers(settings, corpus, reference, morphemes, run, published, threads)
    table, figure = run.folder / "selection.md", run.folder / "tokenizer_sweep.svg"
    write_text(table, selection_markdown(settings, sweep))
    style = Style()
    with figure_style(style):
        save_svg(
            draw_tokenizer_sweep(sweep.rows, settings.choose_by, style), figure, f"Tokenizer sweep {settings.name}"
        )
    run.add_output(table)
    run.add_output(figure)
    shutil.rmtree(sweep.parts, ignore_errors=True)
