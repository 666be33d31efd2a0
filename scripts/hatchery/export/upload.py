"""Plan and perform the upload of an exported model to a repository of the Hugging Face hub.

The branch `main` contains the final model. As the BabyLM challenge requires, each exported intermediate checkpoint is a
branch with the checkpoint's name, such as `chck_1M`. The library `huggingface_hub` uploads the files with the user's
login.
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from hatchery.artifacts.manifests import MANIFEST, REMEDY, read_manifest
from hatchery.errors import ConfigError, MisplacedError, UploadError, first_line
from hatchery.experiment.hub import RUN, HubRepository
from hatchery.experiment.project import Project
from hatchery.export.settings import BRANCHES

MAIN = "main"


class HubInterface(Protocol):
    """The methods of `huggingface_hub.HfApi` that the upload calls."""

    def create_repo(self, repo_id: str, *, private: bool, exist_ok: bool) -> object:
        """Create a model repository on the hub."""

    def create_branch(self, repo_id: str, *, branch: str, exist_ok: bool) -> object:
        """Create a branch of a repository."""

    def upload_folder(
        self, *, repo_id: str, folder_path: str, revision: str, allow_patterns: list[str], commit_message: str
    ) -> object:
        """Upload the files of a folder whose relative paths match `allow_patterns`."""


@dataclass(frozen=True)
class Branch:
    """A branch of the model's repository on the hub, with the files of the folder that is uploaded to this branch."""

    name: str
    folder: Path
    files: dict[str, int]
    """File sizes in bytes, by path relative to the folder."""


@dataclass(frozen=True)
class Upload:
    """A planned upload: the repository, and the branches to upload."""

    repository: str
    private: bool
    licence: str
    branches: tuple[Branch, ...]
    """Branches in the order of the upload. `main` is last: a new branch begins as a copy of `main`, so `main` must
    still be empty when the other branches are created.
    """

    def listing(self) -> str:
        """Return the planned upload as text: one line for each file, and the total size."""
        lines = [
            f"{branch.name:<12} {size:>14,}  {path}"
            for branch in self.branches
            for path, size in sorted(branch.files.items())
        ]
        visibility = "private" if self.private else "public"
        total = sum(size for branch in self.branches for size in branch.files.values())
        head = f"{self.repository} ({visibility}, if it is newly created); licence of the models: {self.licence}"
        counted = f"{len(self.branches)} branches, {len(lines)} files, {total:,} bytes"
        return "\n".join([head, "", f"{'branch':<12} {'bytes':>14}  file", *lines, "", counted])


def planned_upload(project: Project, experiment: str, run: str, results: Path) -> Upload:
    """Return the planned upload of an exported model, after comparing the model's files with their checksums.

    Raises ConfigError if the experiment names no repository, or the same repository for several runs. Raises
    ManifestError if the model was not exported, or if its files have changed since the export.
    """
    hub: HubRepository | None = project.experiment(experiment).hub
    chosen, runs = project.seeded_run(experiment, run), project.seeded_runs(experiment)
    if hub is None:
        raise ConfigError(f"experiment {experiment!r}: hub: the key is missing, expected repository: owner/name")
    if len(runs) > 1 and RUN not in hub.repository:
        raise ConfigError(
            f"experiment {experiment!r}: hub.repository: got {hub.repository!r}, expected a name with {RUN}, because "
            f"each of the {len(runs)} models needs its own repository"
        )
    manifest = read_manifest(results / experiment / "export" / chosen.name / MANIFEST)
    manifest.verify()
    exported = manifest.settings.get("experiment"), (manifest.settings.get("run") or {}).get("name")
    if exported != (experiment, chosen.name):
        raise MisplacedError(
            f"{manifest.path}: is the model {exported[1]} of experiment {exported[0]!r}, expected {run} of "
            f"{experiment!r}; {REMEDY}"
        )
    branches: dict[str, Branch] = {}
    for path in manifest.files():
        place = PurePosixPath(path.relative_to(manifest.folder).as_posix())
        inside = place.parts[0] == BRANCHES
        name = place.parts[1] if inside else MAIN
        folder = manifest.folder.joinpath(*place.parts[: 2 * inside])
        branch = branches.setdefault(name, Branch(name, folder, {}))
        branch.files[str(PurePosixPath(*place.parts[2 * inside :]))] = path.stat().st_size
    ordered = sorted(branches.values(), key=lambda branch: branch.name == MAIN)
    return Upload(hub.for_run(chosen.name), hub.private, str(manifest.measures["licence"]), tuple(ordered))


# Advice to the user for errors of the hub, by HTTP status.
_REMEDIES = {
    401: "log in with `hf auth login`",
    403: "log in with a token that may write to this repository, or name another repository in the experiment's `hub`",
}


def upload(planned: Upload, hub: HubInterface) -> None:
    """Create the repository if it does not exist, then upload one branch after another.

    Raises UploadError if the hub is unreachable or refuses the upload; branches that are already uploaded remain on the
    hub.
    """
    doing = "creating the repository"
    try:
        hub.create_repo(planned.repository, private=planned.private, exist_ok=True)
        for branch in planned.branches:
            doing = f"uploading the branch {branch.name}"
            if branch.name != MAIN:
                hub.create_branch(planned.repository, branch=branch.name, exist_ok=True)
            hub.upload_folder(
                repo_id=planned.repository,
                folder_path=str(branch.folder),
                revision=branch.name,
                allow_patterns=sorted(branch.files),
                commit_message=f"Model exported by Hatchery: {branch.name}",
            )
    except Exception as error:  # The hub's library, its HTTP library and the system raise exceptions of many types.
        status = getattr(getattr(error, "response", None), "status_code", 0)
        remedy = _REMEDIES.get(int(status), "check whether this machine can reach the hub")
        raise UploadError(
            f"{planned.repository}: {doing} failed: {first_line(error)}; {remedy}, and run the same command again; "
            "uploaded branches remain"
        ) from error
