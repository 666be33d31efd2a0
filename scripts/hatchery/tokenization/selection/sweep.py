"""A sweep of tokenizers: train the candidates, measure candidates and reference tokenizers, and choose a tokenizer.

Sources: "Honey, I Shrunk the Language" (reduced-vocabulary study, Section 3.3 and Table 6) for the sweep; LTG-BERT,
Appendix G (the rule of Gowda and May). The same corpus and settings give the same output files, byte for byte, for any
number of threads; a killed sweep that is started again continues with the parts (trained tokenizers, counts and
measures) that are missing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.checksums import sha256_file
from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.artifacts.parallel_map import make_parts
from hatchery.errors import ConfigError, SourceError
from hatchery.progress import Progress
from hatchery.raw.registration import open_source
from hatchery.tokenization.documents import shards_by_split, shards_of
from hatchery.tokenization.selection.candidates import (
    Candidates,
    CountTask,
    MeasureTask,
    count_part,
    load_definition,
    measure_part,
    merge_part,
)
from hatchery.tokenization.selection.frequency_rule import (
    SearchResult,
    frequency_of_rule,
    largest_size,
    read_pre_tokens,
    sizes_between,
)
from hatchery.tokenization.selection.measures import (
    Word,
    count_words,
    draw,
    read_definition,
    sequences_of,
    shipped_words,
    source_words,
    texts_of,
)
from hatchery.tokenization.selection.settings import TOKENIZER_FILE, CandidateType, SweepSettings
from hatchery.tokenization.selection.table import (
    Measures,
    PrintedRows,
    SelectionRow,
    SweepFacts,
    chosen_rows,
    read_published_selection,
    search_csv,
    selection_csv,
)
from hatchery.tokenization.tokenizer_file import open_backend, special_tokens_map, tokenizer_config, use_threads

LISTS = {
    None: "the user's list",
    "own": "our own list, not the paper's",
    "public_13": "the 13 published words of the paper's list",
}


@dataclass(frozen=True)
class Sweep:
    """Results of a sweep: its tokenizers with their measures, the measures printed in papers, and the sizes of the
    sample and of the list of morphemes.
    """

    rows: Sequence[SelectionRow]
    facts: SweepFacts
    printed: PrintedRows
    search: SearchResult | None
    parts: Path
    """Folder of the sweep's parts (trained tokenizers and counts), from which a killed sweep continues."""

    @property
    def final(self) -> SelectionRow:
        """Return the row of the tokenizer that the sweep chooses."""
        return next(row for row in self.rows if row.final_choice)


def sweep_tokenizers(
    settings: SweepSettings,
    corpus: Manifest,
    reference: Mapping[str, Path],
    morphemes: Path | None,
    run: StageRun,
    published: Path | None = None,
    threads: int = 1,
) -> Sweep:
    """Write the tables, all tokenizers and the chosen tokenizer to the folder of `run`.

    The folder `.parts` with trained tokenizers and counts remains until the caller removes it. `morphemes` is the
    manifest of a raw input with a list of morphemes, `reference` maps types to manifests of raw inputs with a
    `tokenizer.json`, and `published` is the file of published values. Raises ConfigError for settings that do not match
    `reference` and `morphemes`. Raises SourceError for a damaged list or reference, CorpusError for a corpus without
    words, and TokenizationError for a vocabulary size that is too large or too small for the corpus.
    """
    use_threads(threads)
    _check(settings, morphemes, reference)
    words = _words(settings, morphemes)
    printed = {} if published is None else read_published_selection(published)
    for candidate in settings.types:
        shards_of(corpus, candidate.settings(candidate.sizes[0]).splits)
    parts_folder = run.folder / ".parts"
    parts_folder.mkdir(parents=True, exist_ok=True)
    reference_files = {
        name: _write_reference(name, path, parts_folder / "references") for name, path in reference.items()
    }
    sequences, sample = _sample(settings, corpus, parts_folder)

    candidates = Candidates(settings, corpus, parts_folder, threads)
    files = {
        (candidate.name, size): candidates.write(candidate, size, run.folder / "tokenizers")
        for candidate in settings.types
        for size in candidate.sizes
    }
    for stale in set((run.folder / "tokenizers").iterdir()) - set(files.values()):
        stale.unlink()
    pre_tokens = {
        candidate.name: _pre_tokens(candidate, files[candidate.name, candidate.sizes[0]], corpus, parts_folder, threads)
        for candidate in settings.types
    }
    tasks = [MeasureTask(path, sample, tuple(words), pre_tokens[name]) for (name, _), path in files.items()]
    tasks += [MeasureTask(path, sample, tuple(words), None) for path in reference_files.values()]
    measured = iter(_measure(tasks, parts_folder, threads))
    by_size = {key: next(measured) for key in files}
    by_reference = {name: next(measured) for name in reference_files}
    reference_sizes = {
        name: open_backend(load_definition(path), name).get_vocab_size() for name, path in reference_files.items()
    }
    rows = chosen_rows(settings, by_size, by_reference, reference_sizes)
    facts = SweepFacts(
        sequences=len(sequences),
        sample_words=count_words(sequences).total(),
        reference_words=len(words),
        reference_morphemes=sum(len(word.morphemes) for word in words),
        morphemes=LISTS[settings.morphemes],
    )
    sweep = Sweep(rows, facts, printed, _search(settings, candidates, pre_tokens), parts_folder)
    _write_files(settings, sweep, run)
    return sweep


def _check(settings: SweepSettings, morphemes: Path | None, references: Mapping[str, Path]) -> None:
    if (settings.morphemes is None) != (morphemes is not None):
        raise ConfigError(
            f"morphemes: got the file {morphemes}, but the settings name "
            f"{settings.morphemes or 'a raw input (morphemes_data)'}"
        )
    for name in references:
        candidate = settings.type_named(name)
        if candidate.reference_ratio is not None:
            raise ConfigError(
                f"reference: got the tokenizer type {name!r}, which already has a reference_ratio; remove one "
                "of the two"
            )
    for candidate in settings.types:
        if len(candidate.sizes) > 1 and candidate.reference_ratio is None and candidate.name not in references:
            raise ConfigError(
                f"types.{candidate.name}: several sizes without a reference; "
                "give a reference_ratio or a reference tokenizer"
            )


def _words(settings: SweepSettings, morphemes: Path | None) -> list[Word]:
    if settings.morphemes is not None:
        return shipped_words(settings.morphemes)
    assert morphemes is not None
    return source_words(morphemes)


def _write_reference(name: str, manifest: Path, folder: Path) -> Path:
    """Check the file of a reference tokenizer and copy it to `folder` for the measuring processes; return the path of
    the copy.
    """
    source = open_source(manifest)
    file = source.one_name(*TOKENIZER_FILE)
    where = f"{source.root}: {file!r}"
    try:
        text = source.read_bytes(file).decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(f"{where} is not UTF-8: byte {error.start}") from error
    open_backend(read_definition(text, where), where)
    path = folder / f"{name}.json"
    write_text(path, text)
    return path


def _sample(settings: SweepSettings, corpus: Manifest, folder: Path) -> tuple[list[str], Path]:
    """Return a random sample of the corpus's sequences, and the path of the file from which the measuring processes
    read this sample.
    """
    texts = texts_of(shards_by_split(corpus), settings.sample_splits)
    sequences = draw(sequences_of(texts, settings.sequence_unit), settings.sample_sequences, settings.seed)
    path = folder / "sample.json"
    write_text(path, json.dumps(sequences, ensure_ascii=False))
    return sequences, path


def _pre_tokens(candidate: CandidateType, tokenizer: Path, corpus: Manifest, folder: Path, threads: int) -> Path:
    """Return the path of a table with the pre-token counts of a tokenizer type's training text.

    Tokenizer types with the same normaliser, pre-tokeniser, splits and sources share a table.
    """
    definition = load_definition(tokenizer)
    settings = candidate.settings(candidate.sizes[0])
    shards = shards_of(corpus, settings.splits)
    alike = [definition["normalizer"], definition["pre_tokenizer"], settings.sources]
    keys = [["count", alike, shard.sha256] for shard in shards]
    tasks = [CountTask(shard.path, tokenizer, settings.sources) for shard in shards]
    tables = []
    with Progress(len(tasks), f"counting pre-tokens for {candidate.name}", "shards") as progress:
        for part in make_parts(tasks, count_part, keys, folder, threads):
            tables.append(part.path)
            progress.update()
    return next(make_parts([tuple(tables)], merge_part, [["merge", keys]], folder)).path


def _measure(tasks: Sequence[MeasureTask], folder: Path, threads: int) -> list[Measures]:
    keys = [
        [
            "measure",
            task.tokenizer.name,
            str(task.tokenizer.parent.name),
            sha256_file(task.tokenizer),
            sha256_file(task.sample),
            None if task.pre_tokens is None else sha256_file(task.pre_tokens),
            [asdict(word) for word in task.words],
        ]
        for task in tasks
    ]
    measures = []
    with Progress(len(tasks), "measuring tokenizers", "tokenizers") as progress:
        for part in make_parts(tasks, measure_part, keys, folder, threads):
            measures.append(Measures(**part.facts))
            progress.update()
    return measures


def _search(settings: SweepSettings, candidates: Candidates, pre_tokens: Mapping[str, Path]) -> SearchResult | None:
    rule = settings.frequency_search
    if rule is None:
        return None
    candidate = settings.type_named(rule.type)
    counts = read_pre_tokens([pre_tokens[rule.type]])

    def frequency_of(size: int) -> int:
        return frequency_of_rule(candidates.definition(candidate, size), counts, f"{rule.type} {size}")

    return largest_size(frequency_of, sizes_between(rule.lowest, rule.highest, rule.step), rule.least_frequency)


def _write_files(settings: SweepSettings, sweep: Sweep, run: StageRun) -> None:
    search, final = sweep.search, sweep.final
    texts = {"selection.csv": selection_csv(sweep.rows, sweep.printed)}
    if search is not None and settings.frequency_search is not None:
        texts["frequency_search.csv"] = search_csv(search, settings.frequency_search.least_frequency)
    chosen = run.folder / "tokenizers" / f"{final.type}_{final.size}.json"
    texts["tokenizer.json"] = chosen.read_text(encoding="utf-8")
    texts |= _transformers_files(texts["tokenizer.json"], settings.type_named(final.type), str(chosen))
    for name, text in texts.items():
        write_text(run.folder / name, text)
        run.add_output(run.folder / name)
    for row in sweep.rows:
        if row.size is not None:
            run.add_output(run.folder / "tokenizers" / f"{row.type}_{row.size}.json")
    run.measures.update(asdict(sweep.facts))
    run.measures.update(
        chosen_type=final.type,
        chosen_size=final.size,
        largest_size_of_rule=None if search is None else search.largest_size,
    )


def _transformers_files(text: str, candidate: CandidateType, where: str) -> dict[str, str]:
    special = candidate.settings(candidate.sizes[0]).special
    config = tokenizer_config(open_backend(read_definition(text, where), where), special)
    files = {"tokenizer_config.json": config, "special_tokens_map.json": special_tokens_map(special)}
    return {
        name: json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n" for name, value in files.items()
    }
