"""Exported models give our numbers in other tools, which `make test-tools` installs.

Each test is skipped if its tool is not installed, or if the tool does not support the version of `transformers`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import hatchery

SENTENCES = ("The old dogs near the house sleep.", "A cat chases the dogs.", "She likes old houses.", "The dogs sleep.")


@pytest.fixture(scope="module")
def load(hub, exported):
    def from_pretrained(name, variant, **options):
        return getattr(hub, name).from_pretrained(exported(variant), trust_remote_code=True, **options)

    return from_pretrained


@pytest.fixture
def tokenizer(hub, exported):
    return lambda variant: hub.AutoTokenizer.from_pretrained(exported(variant), trust_remote_code=False)


def test_captum_attributes_a_decision_to_tokens_and_to_vectors(load, tokenizer):
    attr = pytest.importorskip("captum.attr")
    model = load("AutoModelForSequenceClassification", "elc_biased", num_labels=2).eval()
    inputs = tokenizer("elc_biased")(SENTENCES[0], return_tensors="pt")
    ids, mask, embedding = inputs["input_ids"], inputs["attention_mask"], model.get_input_embeddings()
    nothing = torch.full_like(ids, model.config.pad_token_id)
    options = {"additional_forward_args": (mask,), "target": 1, "n_steps": 200}
    by_layer = attr.LayerIntegratedGradients(lambda ids, mask: model(ids, attention_mask=mask).logits, embedding)
    found, error = by_layer.attribute(ids, nothing, return_convergence_delta=True, **options)
    assert found.shape == (*ids.shape, 24) and float(error.abs()) < 1e-3
    by_vectors = attr.IntegratedGradients(
        lambda vectors, mask: model(inputs_embeds=vectors, attention_mask=mask).logits
    )
    again = by_vectors.attribute(embedding(ids).detach(), embedding(nothing).detach(), **options)
    torch.testing.assert_close(again, found, atol=1e-5, rtol=0.0)


def total(log_probabilities):
    return log_probabilities.sum().item()


def test_minicons_scores_as_we_do(hub, load, tokenizer, pretrained):
    scorer = pytest.importorskip("minicons.scorer")
    model = scorer.IncrementalLMScorer(load("AutoModelForCausalLM", "causal_ltg"), "cpu", tokenizer("causal_ltg"))
    expected = hatchery.model(pretrained("causal_ltg")).scores(SENTENCES)["score"].to_list()
    assert [model.sequence_score([text], total)[0] for text in SENTENCES] == pytest.approx(expected, abs=1e-4)
    if not hub.__version__.startswith("4."):
        pytest.skip("minicons calls `batch_encode_plus` for masked models, which tokenizers lost in version 5")
    model = scorer.MaskedLMScorer(load("AutoModelForMaskedLM", "elc_zero"), "cpu", tokenizer("elc_zero"))
    expected = hatchery.model(pretrained("elc_zero")).scores(SENTENCES)["score"].to_list()
    found = model.sequence_score(list(SENTENCES), total, PLL_metric="original")
    assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("task", ["SEQ_CLS", "TOKEN_CLS", "QUESTION_ANS"])
def test_low_rank_adapters_of_peft_learn_and_are_loaded_again(load, tokenizer, tmp_path, task):
    peft = pytest.importorskip("peft")
    kinds = {"SEQ_CLS": "Sequence", "TOKEN_CLS": "Token"}
    name = f"AutoModelFor{kinds[task]}Classification" if task in kinds else "AutoModelForQuestionAnswering"
    inputs = tokenizer("gpt_bert")(list(SENTENCES), return_tensors="pt", padding=True)
    some = torch.tensor([0, 1, 1, 0])
    labels = {
        "SEQ_CLS": {"labels": some},
        "TOKEN_CLS": {"labels": inputs["input_ids"] % 2},
        "QUESTION_ANS": {"start_positions": some, "end_positions": some + 1},
    }[task]
    torch.manual_seed(1)
    options = {"target_modules": r".*encoder\.layers\..*projection", "r": 4, "lora_alpha": 8}
    model = peft.get_peft_model(load(name, "gpt_bert"), peft.LoraConfig(task_type=task, **options)).train()
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], 0.02)
    losses = []
    for _ in range(12):
        loss = model(**inputs, **labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    model.eval().save_pretrained(tmp_path)
    again = peft.PeftModel.from_pretrained(load(name, "gpt_bert"), tmp_path).eval()
    merged = peft.PeftModel.from_pretrained(load(name, "gpt_bert"), tmp_path).merge_and_unload().eval()
    with torch.no_grad():
        # The first output; there is no loss here.
        expected = model(**inputs, return_dict=False)[0]
        torch.testing.assert_close(again(**inputs, return_dict=False)[0], expected, atol=1e-5, rtol=0.0)
        torch.testing.assert_close(merged(**inputs, return_dict=False)[0], expected, atol=1e-5, rtol=0.0)


def test_a_run_of_the_trainer_that_is_resumed_ends_with_the_same_weights(hub, load, tokenizer, tmp_path, monkeypatch):
    """A bug of the library lost the position of resumed runs (transformers#46165); no tensor may be
    initialised again."""
    pytest.importorskip("accelerate", exc_type=ImportError)
    if hub.__version__.startswith("4."):
        # The Trainer does not need `datasets`, and the installed version needs a newer library of the hub.
        monkeypatch.setattr(hub.utils.import_utils, "_datasets_available", False)
    else:
        pytest.importorskip("datasets", exc_type=ImportError)
    encode = tokenizer("elc_biased")
    rows = [{**encode(SENTENCES[i % 4] * (1 + i % 2)), "labels": i % 2} for i in range(24)]

    class Stop(hub.TrainerCallback):
        def on_step_end(self, _, state, control, **__):
            control.should_training_stop = control.should_training_stop or state.global_step == 4

    def train(folder, *callbacks, resume=False):
        hub.set_seed(0)
        options = {"num_train_epochs": 2, "save_steps": 4, "seed": 1, "report_to": [], "use_cpu": True}
        arguments = hub.TrainingArguments(
            str(folder), per_device_train_batch_size=4, gradient_checkpointing=True, disable_tqdm=True, **options
        )
        model = load("AutoModelForSequenceClassification", "elc_biased")
        collator = hub.DataCollatorWithPadding(encode)
        trainer = hub.Trainer(model, arguments, data_collator=collator, train_dataset=rows, callbacks=list(callbacks))
        trainer.train(resume_from_checkpoint=resume)
        return model

    whole = train(tmp_path / "whole")
    train(tmp_path / "resumed", Stop())
    resumed = train(tmp_path / "resumed", resume=True)
    start = dict(load("AutoModelForSequenceClassification", "elc_biased").named_parameters())
    for (name, found), expected in zip(resumed.named_parameters(), whole.parameters(), strict=True):
        assert torch.equal(found, expected), name
        # A layer with one producer always has weight 1, so its parameter is not trained.
        assert not torch.equal(found, start[name]) or found.numel() == 1, name


def lm_eval(model: Path, folder: Path, tasks: str, more: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command of docs/evaluation.md."""
    hidden = {
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_CACHE": str(folder / "data"),
        "HF_MODULES_CACHE": str(folder / "code"),
    }
    command = [sys.executable, "-m", "lm_eval", "--model", "hf", "--device", "cpu", "--tasks", tasks]
    command += [
        "--model_args",
        f"pretrained={model},trust_remote_code=True,logits_cache=False{more}",
        "--include_path",
        ".",
    ]
    return subprocess.run(
        [*command, "--output_path", "out", "--log_samples"],
        cwd=folder,
        env={**os.environ, **hidden},
        capture_output=True,
        text=True,
        check=False,
    )


def task_file(folder: Path, name: str, rows: list[dict[str, object]], lines: str) -> None:
    """Write a task of the harness with a file of rows."""
    (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / f"{name}.yaml").write_text(lines)


HEAD = "task: {0}\ndataset_path: json\ndataset_kwargs: {{data_files: {0}.jsonl}}\ntest_split: train\n"
LINES = HEAD.format("lines") + 'output_type: loglikelihood_rolling\ndoc_to_text: ""\ndoc_to_target: "{{text}}"\n'
LINES += "metric_list: [{metric: bits_per_byte}]\n"


def test_the_evaluation_harness_scores_causal_models_as_we_do(exported, pretrained, repository, tmp_path):
    for needed in ("lm_eval", "datasets"):
        pytest.importorskip(needed, exc_type=ImportError)
    pairs = [("The dogs sleep.", "The dogs sleeps."), ("She likes old houses.", "She like old houses.")]
    rows = [{"sentence_good": good, "sentence_bad": bad} for good, bad in pairs]
    # The example of the documentation page.
    page = (repository / "docs" / "evaluation.md").read_text("utf-8")
    _, _, example = page.partition("```yaml\n# pairs.yaml")
    task_file(tmp_path, "pairs", rows, example.partition("\n")[2].partition("```")[0])
    choices = [("A cat", ["chases the dogs.", "chase the dogs."]), ("The dogs", ["sleeps.", "sleep."])]
    completions = [{"prefix": prefix, "choices": ends, "right": index} for index, (prefix, ends) in enumerate(choices)]
    lines = HEAD.format("completions") + 'output_type: multiple_choice\ndoc_to_text: "{{prefix}}"\n'
    lines += 'doc_to_choice: "{{choices}}"\ndoc_to_target: "{{right}}"\nmetric_list: [{metric: acc}]\n'
    task_file(tmp_path, "completions", completions, lines)
    task_file(tmp_path, "lines", [{"text": text} for text in SENTENCES], LINES)
    for tasks, more in (("pairs,completions", ""), ("lines", ",add_bos_token=False")):
        done = lm_eval(exported("causal_gpt_bert"), tmp_path, tasks, more)
        assert done.returncode == 0, done.stderr[-3000:]
    results = {
        name: row
        for path in (tmp_path / "out").rglob("results_*.json")
        for name, row in json.loads(path.read_text())["results"].items()
    }
    assert results.keys() == {"pairs", "completions", "lines"}
    samples = {
        name: [
            json.loads(line) for line in next((tmp_path / "out").rglob(f"samples_{name}_*")).read_text().splitlines()
        ]
        for name in results
    }
    asked = hatchery.model(pretrained("causal_gpt_bert"))

    def ours(texts):
        return asked.scores(texts)["score"].to_list()

    for sample, pair in zip(samples["pairs"], pairs, strict=True):
        found = [float(response[0]) for response in sample["filtered_resps"]]
        assert found == pytest.approx(ours(pair), abs=1e-3)
    right = [good > bad for good, bad in map(ours, pairs)]
    assert results["pairs"]["acc,none"] == sum(right) / len(right)
    for sample, (prefix, ends) in zip(samples["completions"], choices, strict=True):
        (given,) = ours([prefix])
        found = [float(response[0]) for response in sample["filtered_resps"]]
        assert found == pytest.approx([score - given for score in ours([f"{prefix} {end}" for end in ends])], abs=1e-3)
    bits = -sum(ours(SENTENCES)) / sum(len(text.encode()) for text in SENTENCES) / torch.tensor(2.0).log().item()
    assert results["lines"]["bits_per_byte,none"] == pytest.approx(bits, abs=1e-4)


def test_the_evaluation_harness_does_not_take_a_masked_model_for_a_causal_one(exported, tmp_path):
    for needed in ("lm_eval", "datasets"):
        pytest.importorskip(needed, exc_type=ImportError)
    task_file(tmp_path, "lines", [{"text": SENTENCES[0]}], LINES)
    done = lm_eval(exported("ltg"), tmp_path, "lines")
    assert done.returncode != 0 and "for this kind of AutoModel: AutoModelForCausalLM" in done.stderr
