"""Exported translation models give our numbers, and `generate` gives the translations of our beam search."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import torch.nn.functional as F

from hatchery.artifacts.manifests import stage_run
from hatchery.evaluation.runtime import load_pretrained
from hatchery.evaluation.sentences_file import read_examples
from hatchery.evaluation.stages.fill_sentences import fill_sentences
from hatchery.export.stages.export_model import export_model
from hatchery.runner import run_stage
from hatchery.translation.settings import SearchSettings
from hatchery.translation.translate import beam_search, never_written

TOLERANCE = {"atol": 1e-5, "rtol": 0.0}
SOURCES = ["The old dogs near the house sleep.", "A cat chases the dogs.", "She likes old houses"]


@pytest.fixture(params=["translation", "translation_post_norm_tied", "translation_deeper_decoder"])
def translation(request, hub, pretrained, exported):
    """Our model and its tokenizer, and both as `transformers` loads them from the exported folder."""
    ours, tokenizer = load_pretrained(pretrained(request.param), translates=True)
    folder = exported(request.param)
    theirs, report = hub.AutoModelForSeq2SeqLM.from_pretrained(folder, trust_remote_code=True, output_loading_info=True)
    assert not any(report.values())
    return ours.eval(), tokenizer, theirs, hub.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)


@torch.no_grad()
def greedy(model, tokenizer, ids, most_tokens):
    """Return a greedy translation by our model and its cache."""
    state = model.begin(torch.tensor([ids]), None)
    forbidden = list(never_written(tokenizer))
    written, token = [], tokenizer.cls_id
    while len(written) < most_tokens and token != tokenizer.sep_id:
        logits = model.logits_at(model.decode(torch.tensor([[token]]), state)[0, -1])
        logits[forbidden] = -torch.inf
        token = int(logits.argmax())
        written.append(token)
    return written


@torch.no_grad()
def test_logits_and_loss_of_a_translation_are_ours(translation):
    ours, _, theirs, their_tokenizer = translation
    inputs = their_tokenizer(SOURCES, return_tensors="pt", padding=True)
    labels = their_tokenizer(text_target=SOURCES[::-1], return_tensors="pt", padding=True)["input_ids"]
    labels = labels.masked_fill(labels == ours.config.pad_token_id, -100)
    output = theirs(**inputs, labels=labels)
    reads = torch.cat([torch.full((3, 1), ours.config.cls_token_id), labels[:, :-1]], dim=1)
    reads = reads.masked_fill(reads == -100, ours.config.pad_token_id)
    mask = inputs["attention_mask"].bool()
    logits = ours.logits_at(ours.decode(reads, ours.begin(inputs["input_ids"], mask)))
    torch.testing.assert_close(output.logits, logits, **TOLERANCE)
    torch.testing.assert_close(output.loss, F.cross_entropy(logits.flatten(0, 1), labels.flatten()), **TOLERANCE)
    read_before = theirs(
        attention_mask=inputs["attention_mask"],
        encoder_outputs=theirs.get_encoder()(**inputs),
        decoder_input_ids=reads,
        use_cache=False,
    )
    torch.testing.assert_close(read_before.logits, logits, **TOLERANCE)
    assert read_before.past_key_values is None
    asked = theirs(**inputs, labels=labels, output_hidden_states=True, output_attentions=True)
    encoded = theirs.get_encoder()(**inputs, output_hidden_states=True, output_attentions=True)
    torch.testing.assert_close(asked.encoder_last_hidden_state, encoded.last_hidden_state, **TOLERANCE)
    layers = len(ours.encoder.layers)
    assert len(asked.encoder_hidden_states) == layers + 1 and len(asked.encoder_attentions) == layers
    for kind in ("hidden_states", "attentions"):
        for one, other in zip(getattr(asked, f"encoder_{kind}"), getattr(encoded, kind), strict=True):
            torch.testing.assert_close(one, other, **TOLERANCE)
    # A token of the translation reads no later token, but all tokens of the source.
    assert all(torch.equal(one, one.tril()) for one in asked.decoder_attentions)
    assert all(bool((one[0, :, 0, 1:] > 0).any()) for one in asked.cross_attentions)


def test_the_tokenizer_ends_texts_and_begins_none(translation):
    _, tokenizer, _, their_tokenizer = translation
    for text in SOURCES:
        assert their_tokenizer(text)["input_ids"] == [*tokenizer.encode_sentences([text])[0], tokenizer.sep_id]
        assert their_tokenizer.decode(their_tokenizer(text)["input_ids"], skip_special_tokens=True) == text


@pytest.mark.parametrize("cache", [{"use_cache": True}, {"use_cache": False}, {"cache_implementation": "static"}])
def test_the_most_probable_tokens_are_ours_one_by_one(hub, translation, cache):
    ours, tokenizer, theirs, their_tokenizer = translation
    if "cache_implementation" in cache and len(theirs.decoder) == 3 and hub.__version__.startswith("4."):
        pytest.skip("version 4 makes a static cache of as many layers as the encoder has")
    options = {"num_beams": 1, "max_new_tokens": 12, **cache}
    expected = [greedy(ours, tokenizer, their_tokenizer(text)["input_ids"], 12) for text in SOURCES]
    for text, ids in zip(SOURCES, expected, strict=True):
        (found,) = theirs.generate(**their_tokenizer(text, return_tensors="pt"), **options).tolist()
        assert found == [tokenizer.cls_id, *ids]
    together = theirs.generate(**their_tokenizer(SOURCES, return_tensors="pt", padding=True), **options)
    for row, ids in zip(together.tolist(), expected, strict=True):
        assert row[1 : len(ids) + 1] == ids
        assert set(row[len(ids) + 1 :]) <= {tokenizer.pad_id}


def test_a_beam_finds_no_better_translation_than_ours_and_its_scores_are_true(translation):
    ours, tokenizer, theirs, their_tokenizer = translation
    inputs = their_tokenizer(SOURCES, return_tensors="pt", padding=True)
    with torch.no_grad():
        for model in (ours, theirs):
            if model.head.vocabulary_bias is not None:
                # End tokens are made likely, so that the library returns finished translations and not truncated ones.
                model.head.vocabulary_bias[tokenizer.sep_id] += 5
    limits = SearchSettings(beam=5, length_factor=1e-6, extra_length=12)
    mask = inputs["attention_mask"].bool()
    best = [found[0] for found in beam_search(ours, inputs["input_ids"], mask, limits, never_written(tokenizer))]
    found = theirs.generate(**inputs, max_new_tokens=12, return_dict_in_generate=True, output_scores=True)
    scored = zip(found.sequences.tolist(), found.sequences_scores.tolist(), strict=True)
    equal = 0
    for index, ((row, score), mine) in enumerate(zip(scored, best, strict=True)):
        if tokenizer.sep_id not in row:
            continue
        ids = row[1 : row.index(tokenizer.sep_id) + 1]
        reads = torch.tensor([[tokenizer.cls_id, *ids[:-1]]])
        with torch.no_grad():
            state = ours.begin(inputs["input_ids"][index : index + 1], mask[index : index + 1])
            steps = ours.logits_at(ours.decode(reads, state))[0].log_softmax(-1)
        assert score == pytest.approx(float(steps.gather(1, torch.tensor(ids)[:, None]).mean()), abs=1e-4)
        assert mine.score >= score - 1e-5
        if mine.score == pytest.approx(score, abs=1e-6):
            assert [*mine.ids, tokenizer.sep_id] == ids
            equal += 1
    assert equal or ours.head.vocabulary_bias is None


def test_the_score_of_a_longer_translation_is_the_mean_of_its_tokens_and_its_end(translation):
    ours, tokenizer, theirs, their_tokenizer = translation
    inputs = their_tokenizer(SOURCES, return_tensors="pt", padding=True)
    found = theirs.generate(
        **inputs, min_new_tokens=4, max_new_tokens=8, return_dict_in_generate=True, output_scores=True
    )
    for index, (row, score) in enumerate(zip(found.sequences.tolist(), found.sequences_scores.tolist(), strict=True)):
        ids = [token for token in row[1:] if token != tokenizer.pad_id]
        assert len(ids) > 4
        with torch.no_grad():
            state = ours.begin(
                inputs["input_ids"][index : index + 1], inputs["attention_mask"][index : index + 1].bool()
            )
            logits = ours.logits_at(ours.decode(torch.tensor([row[: len(ids)]]), state))[0]
        taken = logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None])
        assert score == pytest.approx(float(taken.mean()), abs=1e-4)


def test_it_is_saved_and_loaded_again_with_the_same_logits(translation, hub, tmp_path):
    _, _, theirs, their_tokenizer = translation
    inputs = their_tokenizer(SOURCES, return_tensors="pt", padding=True)
    theirs.save_pretrained(tmp_path)
    again = hub.AutoModelForSeq2SeqLM.from_pretrained(tmp_path, trust_remote_code=True)
    with torch.no_grad():
        assert torch.equal(
            again(**inputs, labels=inputs["input_ids"]).loss, theirs(**inputs, labels=inputs["input_ids"]).loss
        )
    # 1.2 times the 29 tokens of the longest side without its end, plus 10.
    named = ("num_beams", "length_penalty", "early_stopping", "max_new_tokens")
    assert [getattr(again.generation_config, name) for name in named] == [5, 1.0, "never", 44]
    named = ("bos_token_id", "decoder_start_token_id", "eos_token_id", "pad_token_id", "suppress_tokens")
    # Start, padding and mask are never written.
    assert [getattr(again.generation_config, name) for name in named] == [0, 0, 2, 1, [0, 1, 4]]


def test_half_precision_weights_translate(hub, translation):
    *_, theirs, their_tokenizer = translation
    inputs = their_tokenizer(SOURCES, return_tensors="pt", padding=True)
    half = theirs.to(torch.bfloat16)
    assert half.generate(**inputs, max_new_tokens=3, num_beams=2).shape[1] <= 4
    theirs.float()


def test_what_is_missing_is_named(translation):
    *_, theirs, their_tokenizer = translation
    inputs = their_tokenizer(SOURCES, return_tensors="pt", padding=True)
    with pytest.raises(ValueError, match="decoder_input_ids: got none, expected the decoder's inputs, or labels"):
        theirs(**inputs)
    with pytest.raises(ValueError, match="input_ids, inputs_embeds: expected exactly one of these"):
        theirs(decoder_input_ids=inputs["input_ids"])


def test_the_card_shows_how_to_translate_a_sentence_of_the_corpus(
    hub, pretrained, export_settings, tmp_path, monkeypatch, capsys
):
    pairs = [f"{source}\n{source.upper()}" for source in (*SOURCES, "Short one")]
    with stage_run(tmp_path / "corpus" / "manifest.json", {}) as run:
        names = [str(index) for index in range(len(pairs))]
        path = run.folder / "dev-00000-of-00001.parquet"
        pq.write_table(pa.table({"doc_id": names, "source": ["a"] * len(pairs), "text": pairs}), path)
        run.add_output(path)
    stage = {"stage": "fill_sentences", "stage_version": 2}
    filled, model = tmp_path / "filled" / "manifest.json", pretrained("translation")
    run_stage(fill_sentences, stage, filled, model=model, corpus=run.folder / "manifest.json")
    translated = read_examples(filled).examples
    assert {each.given for each in translated} == {text for text in SOURCES if len(text.split()) > 4}
    assert all(each.original == each.given.upper() for each in translated)
    settings = {**export_settings, "languages": ["de", "en"]}
    run_stage(export_model, settings, tmp_path / "out" / "manifest.json", pretraining=model, filled=filled)
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert 'pipeline_tag: "translation"' in card and "from `de` into `en`" in card
    assert "fill-mask" not in card and "AutoModelForMaskedLM" not in card and "Positions are relative" not in card
    config = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["HatcheryEncoderDecoderForSeq2SeqLM"]
    assert set(config["auto_map"]) == {"AutoConfig", "AutoModelForSeq2SeqLM"}
    monkeypatch.chdir(tmp_path / "out")
    capsys.readouterr()
    exec(compile(card.split("```python\n")[1].split("```")[0], "card", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 1
