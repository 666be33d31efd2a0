"""An ensemble as the result of a run: its folder contains copies of its member models, so it does not depend on the
originals.

The files of the first member are at the top, where those of a single model are; the other members are in
`members/<number>`. The ensemble's words seen and training time are the sums over its members, because all members were
trained for it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hatchery.artifacts.manifests import Manifest, StageRun, read_manifest, volatile_facts
from hatchery.errors import ConfigError
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.store import load_language_model, save_model
from hatchery.training.continuation import check_vocabulary
from hatchery.training.inputs import Inputs

FOLDER = "members"
"""Folder of the members after the first, in the folder of an ensemble."""


def check_ensembles(ensemble: bool, inputs: Inputs) -> None:
    """Raise ConfigError for members without the setting `ensemble`, for fewer than two members, for members with
    another tokenizer, and for an ensemble as input where one network is expected."""
    if bool(inputs.members) != ensemble or len(inputs.members) == 1:
        raise ConfigError(f"members: got {len(inputs.members)}, expected at least two with ensemble, otherwise none")
    for member in inputs.members:
        check_vocabulary(read_manifest(member), read_manifest(inputs.tokenizer), "member")
    for path in (inputs.initial, inputs.order_model, *inputs.members, *inputs.teachers):
        if path is not None and is_ensemble(read_manifest(path)):
            raise ConfigError(f"{path}: this model is an ensemble, expected a single model; name its members instead")


def is_ensemble(trained: Manifest) -> bool:
    """Return whether a manifest describes an ensemble."""
    return bool(trained.settings.get("ensemble"))


def save_members(run: StageRun, folder: Path, members: Sequence[Path]) -> None:
    """Copy the members after the first into `folder`, and add sums over all members (words seen, training time) to the
    run's manifest entries."""
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
    """Return the manifest entry `name` of a member's training, plus the entry of the model from which it started; None
    if unknown."""
    facts: Mapping[str, float] = {**volatile_facts(member.path), **member.measures}
    return facts.get("words_seen", facts.get(name)) if name == "words" else facts.get(name)


def load_members(trained: Manifest) -> list[LanguageModel]:
    """Return the members of an ensemble, in their order, in float32 on the CPU. Raises ModelError."""
    folders = [trained.folder / FOLDER / str(number) for number in range(2, int(trained.measures["members"]) + 1)]
    return [load_language_model(folder).float() for folder in (trained.folder, *folders)]
