"""Settings of the repository on the Hugging Face hub to which an experiment's exported models can be uploaded."""

import re
from dataclasses import dataclass

from hatchery.settings.base import Settings, require

RUN = "{run}"


@dataclass(frozen=True)
class HubRepository(Settings):
    """Repository on the Hugging Face hub. The workflow itself uploads nothing; `scripts/upload_model.py` uploads
    models.
    """

    repository: str
    """Owner and name of the repository, as in `me/babylm-ltg-bert`. `{run}` is replaced by the name of the run, so that
    each run has its own repository.
    """
    private: bool = True
    """Create new repositories as private. Existing repositories keep their visibility."""

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
        """Return the name of the repository for the run with the name `run`, such as `ltg_bert-s42`."""
        return self.repository.replace(RUN, run)
