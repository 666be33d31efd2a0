"""The stage `select_tokenizer`: a sweep of tokenizers, with a table and a figure of it for people."""

from collections.abc import Mapping
from pathlib import Path

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.artifacts.parallel_map import remove_parts
from hatchery.rendering.drawing import figure_style, save_svg
from hatchery.rendering.style import Style
from hatchery.runner import stage
from hatchery.tokenization.selection.settings import SweepSettings
from hatchery.tokenization.selection.sweep import sweep_tokenizers
from hatchery.views.tokenizer_sweep.figure import draw_tokenizer_sweep
from hatchery.views.tokenizer_sweep.markdown import selection_markdown


@stage(reference="reference {}")
def select_tokenizer(
    settings: SweepSettings,
    corpus: Manifest,
    reference: Mapping[str, Path],
    morphemes: Path | None,
    run: StageRun,
    published: Path | None = None,
    threads: int = 1,
) -> None:
    """Sweep the tokenizers of `settings`, write what `sweep_tokenizers` says, and show it. Raises like that."""
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
    remove_parts(sweep.parts)
