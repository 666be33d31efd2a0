"""A model and its checkpoints as branches of one repository: their files, their list, and the upload."""

import argparse
import importlib.util
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import huggingface_hub
import pytest
import torch

from hatchery.errors import ConfigError, ManifestError, UploadError
from hatchery.experiment.hub import HubRepository
from hatchery.export.stages.export_model import export_model
from hatchery.export.upload import planned_upload, upload
from hatchery.modeling.store import load_language_model
from hatchery.runner import run_stage

RUN = "elc-s7"


class Fake:
    """A substitute for the hub's interface that records calls."""

    def __init__(self):
        self.calls = []

    def create_repo(self, repo_id, *, private, exist_ok):
        self.calls.append(("repository", repo_id, private, exist_ok))

    def create_branch(self, repo_id, *, branch, exist_ok):
        self.calls.append(("branch", repo_id, branch, exist_ok))

    def upload_folder(self, *, repo_id, folder_path, revision, allow_patterns, commit_message):
        assert revision in commit_message
        self.calls.append(("files", repo_id, revision, folder_path, set(allow_patterns)))


@pytest.fixture
def project():
    runs = {name: SimpleNamespace(name=name) for name in (RUN, "ltg-s7")}
    hub = HubRepository("me/babylm-{run}")
    return SimpleNamespace(
        runs=runs,
        hub=hub,
        experiment=lambda _: SimpleNamespace(hub=hub),
        seeded_run=lambda _, name: runs[name],
        seeded_runs=lambda _: list(runs.values()),
    )


@pytest.fixture
def results(pretrained, export_settings, tmp_path):
    folder = tmp_path / "results" / "tiny" / "export" / RUN
    checkpoints = {"chck_1M": pretrained("bnc_layout_with_pair_head"), "chck_2M": pretrained("elc_zero")}
    inputs = {"pretraining": pretrained("ltg"), "checkpoints": checkpoints}
    run_stage(export_model, export_settings, folder / "manifest.json", **inputs)
    return tmp_path / "results"


@torch.no_grad()
def test_every_branch_is_a_whole_folder_that_loads_as_what_it_is(hub, pretrained, exported_files, results):
    folder = results / "tiny" / "export" / RUN
    variants = {".": "ltg", "branches/chck_1M": "bnc_layout_with_pair_head", "branches/chck_2M": "elc_zero"}
    for place, variant in variants.items():
        path = folder / place
        assert {each.name for each in path.iterdir() if each.is_file()} - {
            "manifest.json",
            "provenance.json",
        } == exported_files
        theirs = hub.AutoModelForMaskedLM.from_pretrained(path, trust_remote_code=True)
        tokenizer = hub.AutoTokenizer.from_pretrained(path, trust_remote_code=False)
        ours, ids = (
            load_language_model(pretrained(variant).parent).eval(),
            tokenizer("The old dogs near the house sleep.")["input_ids"],
        )
        given = torch.tensor([ids])
        torch.testing.assert_close(theirs(given).logits, ours.logits_at(ours.encoder(given)[-1]), atol=1e-5, rtol=0.0)
    card = (folder / "branches" / "chck_1M" / "README.md").read_text("utf-8")
    assert f"{RUN}-chck_1M" in card and "license:" in card


def command(repository):
    spec = importlib.util.spec_from_file_location("upload_model", repository / "scripts" / "upload_model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_nothing_is_uploaded_without_the_word_and_all_that_would_be_is_listed(
    results, exported_files, project, repository, monkeypatch, capsys
):
    made = []
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: made.append(Fake()) or made[-1])
    script = command(repository)
    monkeypatch.setattr(script, "open_project", lambda _: project)
    given = {"experiment": "tiny", "run": RUN, "project": results.parent}
    script.main(argparse.Namespace(upload=False, **given))
    output = capsys.readouterr().out
    assert not made and "Nothing was uploaded" in output
    assert "me/babylm-elc-s7 (private, if it is newly created); licence of the models: other" in output
    folder = results / "tiny" / "export" / RUN
    for branch, place in (("main", "."), ("chck_1M", "branches/chck_1M"), ("chck_2M", "branches/chck_2M")):
        for name in exported_files:
            size = (folder / place / name).stat().st_size
            assert f"{branch:<12} {size:>14,}  {name}\n" in output
    assert "3 branches, 21 files" in output

    script.main(argparse.Namespace(upload=True, **given))
    (fake,) = made
    name = "me/babylm-elc-s7"
    assert fake.calls == [
        ("repository", name, True, True),
        ("branch", name, "chck_1M", True),
        ("files", name, "chck_1M", str(folder / "branches" / "chck_1M"), exported_files),
        ("branch", name, "chck_2M", True),
        ("files", name, "chck_2M", str(folder / "branches" / "chck_2M"), exported_files),
        ("files", name, "main", str(folder), exported_files),
    ]


def test_what_cannot_be_uploaded_is_refused_before_anything_is_listed(results, project):
    project.experiment = lambda _: SimpleNamespace(hub=None)
    with pytest.raises(ConfigError, match="hub: the key is missing, expected repository: owner/name"):
        planned_upload(project, "tiny", RUN, results)
    project.experiment = lambda _: SimpleNamespace(hub=HubRepository("me/one"))
    with pytest.raises(ConfigError, match=r"got 'me/one', expected a name with \{run\}, because "):
        planned_upload(project, "tiny", RUN, results)
    with pytest.raises(ConfigError, match="repository: got 'one'"):
        HubRepository("one")
    project.experiment = lambda _: SimpleNamespace(hub=project.hub)
    with pytest.raises(ManifestError, match=r"ltg-s7"):
        planned_upload(project, "tiny", "ltg-s7", results)
    with pytest.raises(ManifestError, match=r"the result was made in results/tiny/export/elc-s7; move the result back"):
        (results / "tiny").rename(results / "other")
        planned_upload(project, "other", RUN, results)
    volatile = results / "other" / "export" / RUN / "provenance.json"
    volatile.rename(results / "provenance.json")
    with pytest.raises(
        ManifestError,
        match=r"is the model elc-s7 of experiment 'tiny', expected elc-s7 of 'other'; remove this manifest",
    ):
        planned_upload(project, "other", RUN, results)
    (results / "provenance.json").rename(volatile)
    (results / "other").rename(results / "tiny")
    path = results / "tiny" / "export" / RUN / "branches" / "chck_1M" / "config.json"
    path.write_text(path.read_text().replace("24", "25"))
    with pytest.raises(ManifestError, match=r"config\.json"):
        planned_upload(project, "tiny", RUN, results)


@pytest.fixture
def server():
    """A hub whose status for a path is `server.answer(path)`; None means success."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status = self.server.answer(self.path) or 200
            content = b'{"url": "http://127.0.0.1/me/babylm-elc-s7", "branches": [], "tags": [], "converts": []}'
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST  # noqa: N815 - the library's names

        def log_message(self, *_):
            pass

    found = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield found
    found.shutdown()


REFUSED = {
    "not logged in": (lambda path: 401, r"creating the repository failed: .*401.*; log in with `hf auth login`"),
    "not allowed": (
        lambda path: 403 if "/branch/" in path else None,
        r"uploading the branch chck_1M failed: .*403.*; log in with a token that may write to this repository",
    ),
    "the hub fails": (
        lambda path: 500,
        r"creating the repository failed: .*500.*; check whether this machine can reach",
    ),
    "no network": (None, r"creating the repository failed: .+; check whether this machine can reach the hub"),
}


@pytest.mark.parametrize(("answer", "message"), REFUSED.values(), ids=REFUSED)
def test_a_hub_that_refuses_or_cannot_be_reached_is_one_line(results, project, server, answer, message, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    server.answer = answer
    endpoint = f"http://127.0.0.1:{server.server_port if answer else 9}"
    planned = planned_upload(project, "tiny", RUN, results)
    with pytest.raises(UploadError, match=rf"^me/babylm-elc-s7: {message}") as caught:
        upload(planned, huggingface_hub.HfApi(endpoint=endpoint, token="hf_none"))
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("and run the same command again; uploaded branches remain")
