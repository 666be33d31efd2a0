"""The benchmark of programs: our programs run and print the numbers of a few lines with the library."""

import zipfile
from pathlib import Path

import pytest
import torch
import transformers

from benchmarks import doors


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pairs = [
        '{"sentence_good": "The dogs sleep.", "sentence_bad": "The dogs sleeps.", "UID": "a", "linguistics_term": "b"}',
        '{"sentence_good": "A cat sees it.", "sentence_bad": "A cat see it.", "UID": "a", "linguistics_term": "b"}',
    ]
    with zipfile.ZipFile(tmp_path / "blimp.zip", "w") as archive:
        archive.writestr("blimp/a.jsonl", "\n".join(pairs * 20) + "\n")
    doors.prepare(tmp_path, tmp_path / "blimp.zip", 2, tiny=True)
    return tmp_path


@pytest.mark.slow
def test_our_programs_print_the_numbers_of_a_few_lines_with_the_library(folder: Path) -> None:
    works = doors.works(2)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "gpt2").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "gpt2")

    def score(text: str) -> float:
        ids = torch.tensor([[tokenizer.eos_token_id, *tokenizer(text)["input_ids"]]])
        with torch.no_grad():
            found = model(ids).logits.log_softmax(-1)[0, :-1].gather(1, ids[0, 1:, None]).sum()
        return float(found)

    right = [score("The dogs sleep.") > score("The dogs sleeps."), score("A cat sees it.") > score("A cat see it.")]
    found = doors.run(works["minimal pairs, causal"][0], folder, None)
    assert isinstance(found, tuple) and found[0] > 0 and found[1] == pytest.approx(50 * sum(right))
    sentences = (folder / doors.SENTENCES).read_text().splitlines()
    words = doors.run(works["surprisal of the words of 1,000 sentences"][0], folder, None)
    bits = -sum(map(score, sentences)) / torch.log(torch.tensor(2.0)).item()
    assert isinstance(words, tuple) and words[1] == pytest.approx(bits, rel=1e-4)


def test_what_does_not_run_is_said_and_lines_that_are_not_empty_count(folder: Path) -> None:
    assert doors.run(doors.Program("x", "import no_such_module"), folder, None) == (
        "ModuleNotFoundError: No module named 'no_such_module'"
    )
    assert doors.lines_of(doors.Program("x", "\na\n\n  b\n")) == 2
    ours = [programs[0] for programs in doors.works(2).values()]
    assert {program.tool for program in ours} == {"hatchery"} and max(map(doors.lines_of, ours)) <= 7
