"""Exported hybrid models: one set of weights, as a masked model and as a causal one."""

import json

import pytest
import torch

from hatchery.evaluation.runtime import load_pretrained

TOLERANCE = {"atol": 1e-5, "rtol": 0.0}


@torch.no_grad()
@pytest.mark.parametrize("variant", ["hybrid_ltg", "hybrid_roberta"])
def test_each_class_attends_as_it_is_called(hub, pretrained, exported, variant):
    ours, _ = load_pretrained(pretrained(variant))
    folder = exported(variant)
    assert {"AutoModelForMaskedLM", "AutoModelForCausalLM"} <= json.loads((folder / "config.json").read_text())[
        "auto_map"
    ].keys()
    ids = torch.randint(6, 320, (3, 12), generator=torch.Generator().manual_seed(2))
    found = []
    for name, causal in (("AutoModelForMaskedLM", False), ("AutoModelForCausalLM", True)):
        model = getattr(hub, name).from_pretrained(folder, trust_remote_code=True)
        found.append(model(ids).logits)
        torch.testing.assert_close(found[-1], ours.eval().logits_at(ours.encoder(ids, causal=causal)[-1]), **TOLERANCE)
    assert not torch.allclose(*found)
    bare = hub.AutoModel.from_pretrained(folder, trust_remote_code=True)
    torch.testing.assert_close(bare(ids).last_hidden_state, ours.encoder(ids)[-1], **TOLERANCE)


def test_the_card_says_where_a_hidden_token_is_predicted_and_its_example_runs(hub, exported, monkeypatch, capsys):
    folder = exported("hybrid_ltg")
    card = (folder / "README.md").read_text()
    assert "what it says of a hidden token stands at the position before it" in " ".join(card.split())
    code = card.split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(folder)
    exec(compile(code, "card", "exec"), {})
    assert capsys.readouterr().out.strip()
