"""Repository on the Hugging Face hub for the exported models of an experiment, if somebody uploads them."""

import re
from dataclasses import dataclass

from hatchery.settings.base import Settings, require

RUN = "{run}"


@dataclass(frozen=True)
class HubRepository(Settings):
    """A repository of the hub. Nothing is uploaded by the workflow; `scripts/upload_model.py` does it when told to."""

    repository: str
    """Owner and name, as in `me/babylm-ltg-bert`. `{run}` stands for the name of the run, so that each has its own."""
    private: bool = True
    """Whether a repository that is made anew is private. One that is there stays as it is."""

    def __post_init__(self) -> None:
        plain = self.repository.replace(RUN, "run")
        expected = "owner/name of letters, digits, '-', '_' and '.'"
        require(
            re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", plain) is not None,
            "repository",
            self.repository,
            expected,
        )

    def for_run(self, run: str) -> str:
        """Return the repository of one run, such as `ltg_bert-s42`."""
        return self.repository.replace(RUN, run)
