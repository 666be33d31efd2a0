"""How many threads the tokenizers library may use.

The library starts its thread pool at the first parallel call and reads the number from the environment then, so the
number must be set before any text is encoded. Results never depend on it.
"""

import os

from hatchery.errors import ConfigError


def use_threads(threads: int | None) -> None:
    """Let the tokenizers library use `threads` threads in this process; `None` leaves the choice to the library.

    Call it before the first training or encoding of the process. Raises ConfigError for a number below 1.
    """
    if threads is None:
        return
    if threads < 1:
        raise ConfigError(f"threads: expected a positive number, got {threads}")
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
