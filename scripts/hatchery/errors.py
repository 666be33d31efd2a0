"""Errors that are addressed to the person who runs Hatchery.

Every message is one line that says what is wrong, where, and what was expected. The commands print such an error
without a traceback; any other exception is a defect of ours and keeps its traceback.
"""


def first_line(error: BaseException) -> str:
    """The first line with words of what others' code says is wrong, or the kind of error where it says nothing."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


class HatcheryError(Exception):
    """A mistake in the input or the surroundings that the user can mend."""


class ConfigError(HatcheryError):
    """A configuration value is unknown, of the wrong type, or does not fit another one."""


class SourceError(HatcheryError):
    """A raw input is missing, unreadable or not what its manifest says."""


class CorpusError(HatcheryError):
    """A document cannot be read from a raw input."""


class TokenizationError(HatcheryError):
    """A tokenizer or a token shard is missing, damaged or unusable."""


class ModelError(HatcheryError):
    """A model configuration or a weights file is invalid."""


class CheckpointError(HatcheryError):
    """A checkpoint cannot be written or read."""


class TrainingError(HatcheryError):
    """Training cannot go on: the loss is not finite, or the settings exclude each other."""


class EvaluationError(HatcheryError):
    """Evaluation data or results are invalid."""


class ManifestError(HatcheryError):
    """A manifest is missing or damaged, or a file is not what the manifest says."""


class MisplacedError(ManifestError):
    """A sound result lies in the folder of another one; nothing removes it, because it is somebody's work."""


class PlanError(HatcheryError):
    """Snakemake cannot plan what was asked for, or its answer cannot be read."""
