"""An ensemble as the result of a run: its folder holds copies of its members, so it stays whole without them.

The files of the first member are at the top, where those of a single model are; the other members are in
`members/<number>`. Its words and its time are the sums of the members', because all of them were trained for it.
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
    """Raise ConfigError for members without the setting, for fewer than two, for another tokenizer, and for an ensemble
    where one network is expected."""
    if bool(inputs.members) != ensemble or len(inputs.members) == 1:
        raise ConfigError(f"members: got {len(inputs.members)}, expected at least two with ensemble, otherwise none")
    for member in inputs.members:
        check_vocabulary(read_manifest(member), read_manifest(inputs.tokenizer), "member")
    for path in (inputs.initial, inputs.order_model, *inputs.members, *inputs.teachers):
        if path is not None and is_ensemble(read_manifest(path)):
            raise ConfigError(f"{path}: this model is an ensemble, expected a single model; name its members instead")


def is_ensemble(trained: Manifest) -> bool:
    """Return whether a manifest is that of an ensemble."""
    return bool(trained.settings.get("ensemble"))


def save_members(run: StageRun, folder: Path, members: Sequence[Path]) -> None:
    """Write the members after the first into `folder`, and the sums of all members into the facts of the run."""
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
    """Return a number of a member's training, with that of the model from which it started; None if unknown."""
    facts: Mapping[str, float] = {**volatile_facts(member.path), **member.measures}
    return facts.get("words_seen", facts.get(name)) if name == "words" else facts.get(name)


def load_members(trained: Manifest) -> list[LanguageModel]:
    """Return the members of an ensemble, in their order, in float32 on the CPU. Raises ModelError."""
    folders = [trained.folder / FOLDER / str(number) for number in range(2, int(trained.measures["members"]) + 1)]
    return [load_language_model(folder).float() for folder in (trained.folder, *folders)]
