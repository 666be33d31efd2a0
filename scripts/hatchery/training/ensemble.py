"""A run whose model is an ensemble: the run's folder contains copies of the member models, so the ensemble does not
depend on the members' own folders.

The first member's files are at the top of the folder, like the files of a single model; the other members are in
`members/<number>`. The ensemble's number of words seen and its training time are sums over its members.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hatchery.artifacts.manifests import Manifest, StageRun, read_manifest, volatile_facts
from hatchery.errors import ConfigError
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.store import load_language_model, save_model
from hatchery.training.continuation import check_vocabulary
from hatchery.training.inputs import Inputs
from hatchery.training.milestones import words_seen

FOLDER = "members"
"""Subfolder of an ensemble's folder with all members except the first."""


def check_ensembles(ensemble: bool, inputs: Inputs) -> None:
    """Raise ConfigError for inputs that contradict the setting `ensemble`.

    Such inputs are: members although `ensemble` is false, fewer than two members, a member with another tokenizer than
    the run, and an ensemble as an input that must be a single model.
    """
    if bool(inputs.members) != ensemble or len(inputs.members) == 1:
        raise ConfigError(
            f"members: got {len(inputs.members)}, expected at least two members with the setting `ensemble`, or no "
            "members without this setting"
        )
    for member in inputs.members:
        check_vocabulary(read_manifest(member), read_manifest(inputs.tokenizer), "member")
    for path in (inputs.initial, inputs.order_model, *inputs.members, *inputs.teachers):
        if path is not None and is_ensemble(read_manifest(path)):
            raise ConfigError(
                f"{path}: this model is an ensemble, expected a single model; name the members of the ensemble instead"
            )


def is_ensemble(trained: Manifest) -> bool:
    """Return whether the manifest `trained` belongs to an ensemble."""
    return bool(trained.settings.get("ensemble"))


def save_members(run: StageRun, folder: Path, members: Sequence[Path]) -> None:
    """Copy all members except the first into `folder`, and set the run's manifest entries: the number of members, and
    the sums of their parameters, words and training seconds. If the number of words or seconds of a member is unknown,
    this sum is omitted.
    """
    made = [read_manifest(path) for path in members]
    parameters = 0
    for number, member in enumerate(made, 1):
        network = load_language_model(member.folder)
        parameters += sum(parameter.numel() for parameter in network.parameters())
        if number > 1:
            for path in save_model(folder / FOLDER / str(number), network):
                run.add_output(path)
    run.measures["members"] = len(made)
    run.measures["parameters"] = parameters
    for name, found in (("words", run.measures), ("training_seconds", run.volatile)):
        of_members = [_facts(member, name) for member in made]
        if None not in of_members:
            found[name] = sum(value for value in of_members if value is not None)


def _facts(member: Manifest, name: str) -> float | None:
    """Return the value called `name` that the training of a member recorded; None if there is no such value. The value
    "words" is the number of words seen by the member and by the models from which it was initialised.
    """
    if name == "words":
        return words_seen(member.measures)
    facts: Mapping[str, float] = {**volatile_facts(member.path), **member.measures}
    return facts.get(name)


def load_members(trained: Manifest) -> list[LanguageModel]:
    """Return an ensemble's members, in order, in float32 on the CPU. Raises ModelError if a member cannot be loaded."""
    folders = [trained.folder / FOLDER / str(number) for number in range(2, int(trained.measures["members"]) + 1)]
    return [load_language_model(folder).float() for folder in (trained.folder, *folders)]
