"""The multilingual track of BabyLM 2026 in generated languages: English, and two ciphers of English called nl and zh.

The cipher nl exchanges letters. The cipher zh replaces each word by two Chinese characters, and omits spaces. Therefore
the languages have different tokens, but equal labels. The layouts and column names are those of the data sets on the
Hugging Face hub (docs/papers/babylm-2026.md, "The multilingual track"); file names are inferred.
"""

import csv
import hashlib
import io
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from demo.documents import MAKERS, Kind, natural
from demo.grammar import text_of
from demo.rows import Pair, TaskRow, json_lines

Files = Iterator[tuple[str, bytes]]
_LETTERS = str.maketrans("bcdfghjklmnpqrstvwxzaeiou", "pvtgkzrlmnbqdsfwhjcxouiea")
_WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)?")
_FIRST, _CHARACTERS = 0x4E00, 2000
_MARKS = str.maketrans({".": "。", "?": "？", ",": "，", "!": "！", " ": ""})


def english(text: str) -> str:
    """Return the text unchanged."""
    return text


def dutch(text: str) -> str:
    """Return the text in the artificial language nl, a cipher of English that exchanges letters."""
    return text.translate(_LETTERS)


def mandarin(text: str) -> str:
    """Return the text in the cipher zh: two characters for each word, full-width punctuation marks, and no spaces."""
    return _WORD.sub(lambda word: _characters(word[0].lower()), text).translate(_MARKS)


def _characters(word: str) -> str:
    number = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
    return chr(_FIRST + number % _CHARACTERS) + chr(_FIRST + number // _CHARACTERS % _CHARACTERS)


LANGUAGES: Mapping[str, Callable[[str], str]] = {"en": english, "nl": dutch, "zh": mandarin}
_CODES = {"en": ("eng", "eng_latn"), "nl": ("nld", "nld_latn"), "zh": ("zho", "cmn_hans")}
_KINDS: tuple[Kind, ...] = ("story", "conversation", "article")
_FEW_PARADIGMS = 4
_ENTAILMENT = {
    "en": ("contradiction", "entailment", "neutral"),
    "nl": ("entailment", "neutraal", "tegenspraak"),
    "zh": ("矛盾", "蕴含", "中立"),
}
_OF_LETTERS = ("arc", "belebele", "bmlama", "include", "truthfulqa")
_WITHOUT = {"include": ("en",), "xnli": ("nl",)}
"""Languages without data, by task."""


def multilingual_files(pairs: Mapping[str, list[Pair]], seed: int, documents: int, count: int) -> Files:
    """Yield (path, content) of all files of the multilingual track.

    `pairs` are BLiMP's minimal pairs by paradigm, `documents` is the number of documents of each language, and `count`
    is the number of training rows of each task.
    """
    for language, written in LANGUAGES.items():
        yield f"text/babylm-{_CODES[language][0]}_dataset.csv", _documents(written, language, seed, documents)
    chosen = {uid: pairs[uid] for uid in sorted(pairs)[:_FEW_PARADIGMS]}
    few = max(2, count // 6)
    yield from _paired(chosen, few)
    everything = [pair for drawn in chosen.values() for pair in drawn]
    for language, written in LANGUAGES.items():
        yield from _chosen(everything, language, written, few)
        yield from _tuned(everything, language, written, count)
        sentences = [text_of(pair.good) for pair in everything]
        yield f"ud/{_TREEBANKS[language]}-ud-train.conllu", _treebank(sentences[:count], written)


def _documents(written: Callable[[str], str], language: str, seed: int, count: int) -> bytes:
    """Return a CSV table of generated documents, with the ten columns of BabyLM's released multilingual corpus."""
    rows = io.StringIO()
    table = csv.writer(rows, lineterminator="\n")
    names = "text doc-id category data-source script age-estimate license misc num-tokens language"
    table.writerow(names.split())
    script = "Hans" if language == "zh" else "Latn"
    for index in range(count):
        kind = _KINDS[index % len(_KINDS)]
        made = MAKERS[kind](random.Random(f"{seed}/multilingual/{index}"))
        text = "\n".join(written(natural(words)) for words in made.sentences)
        digest = hashlib.sha256(text.encode()).hexdigest()
        category = "child-directed-speech" if kind == "conversation" else "child-books"
        facts = (digest, category, "generated", script, "n/a", "CC0", "{}", len(text.split()), _CODES[language][0])
        table.writerow((text, *facts))
    return rows.getvalue().encode()


def _paired(chosen: Mapping[str, list[Pair]], few: int) -> Files:
    """Yield (path, content) of the files of minimal pairs. Some suites have a folder or file for each paradigm; other
    suites have one table.
    """

    def rows(drawn: Sequence[Pair], written: Callable[[str], str], names: tuple[str, str]) -> list[TaskRow]:
        return [{names[0]: written(text_of(one.good)), names[1]: written(text_of(one.bad))} for one in drawn]

    blimp = ("sentence_good", "sentence_bad")
    for number, (uid, drawn) in enumerate(chosen.items()):
        # Paradigms have different numbers of pairs, so that the mean over pairs differs from the mean over paradigms.
        part = drawn[: few * (number + 1)]
        yield f"blimp_babylm_filtered/{uid}/train-00000-of-00001.jsonl", json_lines(rows(part, english, blimp))
        yield f"blimp_nl/{uid}.jsonl", json_lines(rows(part, dutch, blimp))
        yield f"zhoblimp/{uid}.jsonl", json_lines(rows(part, mandarin, blimp))
    everything = [pair for drawn in chosen.values() for pair in drawn[:few]]
    for language in ("en", "nl"):
        table = rows(everything, LANGUAGES[language], ("sen", "wrong_sen"))
        lines = ["prefix\tsen\twrong_sen", *(f"\t{row['sen']}\t{row['wrong_sen']}" for row in table)]
        yield f"multiblimp/{_CODES[language][0]}/data.tsv", "".join(f"{line}\n" for line in lines).encode()
    for language in ("nl", "zh"):
        named = rows(everything, LANGUAGES[language], ("acceptable_sent", "unacceptable_sent"))
        yield f"xcomps/comps_{language}.jsonl", json_lines(named)
    for name in ("structure", "pinyin"):
        found = rows(everything[name == "pinyin" :: 2], mandarin, blimp)
        yield f"hanzi_{name}/train.jsonl", json_lines(found)


def _chosen(pairs: Sequence[Pair], language: str, written: Callable[[str], str], few: int) -> Files:
    """Yield the multiple-choice files: MuBench, with the label in three formats (text of the choice, digit as text,
    integer), and GlobalPIQA, with a column for each choice.
    """
    stem = ["WinoGrande", "StoryCloze", "Hellaswag"]
    for number, name in enumerate(stem):
        n_choices = 4 if name == "Hellaswag" else 2
        rows = []
        for index, group in enumerate(_groups(pairs[::2], n_choices, 2 * few)):
            prompt, choices, label = _question(group, index, written)
            form: object = (choices[label], str(label), label)[number]
            rows.append({"prompt": prompt, "choices": choices, "label": form})
        yield f"mubench/{name}Dataset_lighteval_{language}/test.jsonl", json_lines(rows)
    for name, n_choices in (("parallel", 4), ("nonparallel", 2)):
        rows = []
        for index, group in enumerate(_groups(pairs[1::2], n_choices, few)):
            prompt, choices, label = _question(group, index, written)
            solutions = {f"solution{place}": choice for place, choice in enumerate(choices)}
            rows.append({"prompt": prompt, **solutions, "label": label})
        yield f"global_piqa_{name}/{_CODES[language][1]}.jsonl", json_lines(rows)


def _groups(pairs: Sequence[Pair], size: int, most: int) -> Iterator[Sequence[Pair]]:
    for start in range(0, min(len(pairs) - size, most * size), size):
        yield pairs[start : start + size]


def _question(group: Sequence[Pair], index: int, written: Callable[[str], str]) -> tuple[str, list[str], int]:
    """Return (prompt, choices, label): the first half of a sentence, second halves of this and other sentences, and the
    index of the right second half.
    """
    cut = max(1, len(group[0].good) // 2)
    prompt = written(text_of((*group[0].good[:cut],)))
    ends = [written(text_of(pair.bad[max(1, len(pair.bad) // 2) :])) for pair in group[1:]]
    label = index % len(group)
    right = written(text_of(group[0].good[cut:]))
    return prompt, [*ends[:label], right, *ends[label:]], label


def _tuned(pairs: Sequence[Pair], language: str, written: Callable[[str], str], count: int) -> Files:
    """Yield (path, content) of the training and validation files of the fine-tuning tasks. The index of a row
    determines its label.
    """
    sizes = {"train": count, "valid": count // 3 + 1}
    for task in (*_OF_LETTERS, "sib200", "mnli", "xnli"):
        if language in _WITHOUT.get(task, ()):
            continue
        start = 0
        for split, size in sizes.items():
            rows = [
                _row(task, language, written, pairs[number % len(pairs)], number)
                for number in range(start, start + size)
            ]
            start += size
            numbered = [{"idx": index, **row} for index, row in enumerate(rows)]
            yield f"finetune/{task}_{language}.{split}.jsonl", json_lines(numbered)


def _row(task: str, language: str, written: Callable[[str], str], pair: Pair, number: int) -> TaskRow:
    kind = number % 3
    good, bad = written(text_of(pair.good)), written(text_of(pair.bad))
    if task in ("mnli", "xnli"):
        label: object = _ENTAILMENT[language][kind] if task == "mnli" else kind
        return {"premise": good, "hypothesis": (bad, good, written("No."))[kind], "label": label}
    labels = ("geography", "politics", "travel") if task == "sib200" else ("A", "B", "C")
    return {"sentence": (good, bad, f"{good} {bad}")[kind], "label": labels[kind]}


_TREEBANKS = {"en": "en_ewt", "nl": "nl_alpino", "zh": "zh_gsdsimp"}


def _treebank(sentences: Sequence[str], written: Callable[[str], str]) -> bytes:
    """Return sentences in CoNLL-U format. The last letter of a word determines its part of speech."""
    lines: list[str] = []
    for sentence in sentences:
        for number, word in enumerate(re.findall(r"[A-Za-z']+|[.?!,]", sentence), start=1):
            tag = (
                "PUNCT"
                if not word[0].isalpha()
                else "VERB"
                if word[-1] in "sd"
                else "NOUN"
                if word[-1] in "aeiou"
                else "X"
            )
            head = 0 if number == 1 else 1
            cells = (number, written(word), "_", tag, "_", "_", head, "root" if number == 1 else "dep", "_", "_")
            lines.append("\t".join(map(str, cells)))
        lines.append("")
    return "".join(f"{line}\n" for line in lines).encode()
