"""The generated pairs: the same from run to run, one translation for each sentence, and test sentences of their own."""

from collections import Counter

from demo.parallel import LANGUAGES, SPLITS, parallel_files


def lines_of(pairs: int = 400, seed: int = 0) -> dict[str, list[str]]:
    return {name: content.decode().splitlines() for name, content in parallel_files(pairs, seed)}


def test_the_same_settings_give_the_same_bytes_and_another_seed_another_language() -> None:
    assert dict(parallel_files(100, 3)) == dict(parallel_files(100, 3))
    assert lines_of(100, 3)["train.tv"][0] != lines_of(100, 4)["train.tv"][0]


def test_every_sentence_has_one_translation_in_either_direction() -> None:
    found = lines_of()
    pairs = {pair for split in SPLITS for pair in zip(*(found[f"{split}.{end}"] for end in LANGUAGES), strict=True)}
    for index in range(2):
        assert len({pair[index] for pair in pairs}) == len(pairs)


def test_held_out_sentences_are_in_no_other_file_and_depend_on_no_other() -> None:
    found, more = lines_of(), lines_of(2000)
    sentences = {split: found[f"{split}.en"] for split in SPLITS}
    for split in ("dev", "test", "other"):
        assert len(set(sentences[split])) == len(sentences[split])
        others = {line for other in SPLITS if other != split for line in sentences[other]}
        assert not others & set(sentences[split])
        assert more[f"{split}.en"][: len(sentences[split])][:5] == sentences[split][:5]


def test_the_other_domain_has_longer_sentences_and_evener_words() -> None:
    found = lines_of(2000)
    words = {split: [word for line in found[f"{split}.en"] for word in line.split()] for split in ("test", "other")}
    assert len(words["other"]) / len(found["other.en"]) > 1.8 * len(words["test"]) / len(found["test.en"])
    # The ten most frequent words are a smaller share of the text.
    shares = {split: sum(n for _, n in Counter(words[split]).most_common(10)) / len(words[split]) for split in words}
    assert shares["other"] < shares["test"]
