"""What comparing token shards with their checksums adds to the start of a pretraining: under 2 % is wanted.

Generated shards of the size of the STRICT track's (130 million tokens) are opened in processes of their own: without
the comparison, with it as the stage does it (in a thread, while modules are imported), and with it when
the shards are opened. The start is such a process from its beginning to cut segments and an initialised LTG-BERT (base)
on the CPU; the best round of each counts, and they take turns, so that a neighbour on the machine slows all of them.
Exit code 1 above the limit.
Usage: benchmarks/pretraining_start.py [--megatokens 130] [--rounds 3]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import read_tokens

LIMIT = 0.02
# LTG-BERT base.
MODEL = {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 12}
WAYS = ("without", "ahead", "on opening")


def measure(tokens: Path, way: str) -> None:
    """Start a pretraining; print the seconds in which the shards are opened."""
    from hatchery.artifacts import manifests
    from hatchery.tokenization.shards import TOKEN_SHARDS, TRAINING_SPLIT, check_ahead

    if way == "without":
        manifests.check_file = lambda path, expected: path
    elif way == "ahead":
        check_ahead(tokens, TOKEN_SHARDS, TRAINING_SPLIT)
    import hatchery.training.stage  # noqa: F401
    from hatchery.modeling.families import model_config
    from hatchery.modeling.initialisation import initialise_
    from hatchery.modeling.language_model import LanguageModel
    from hatchery.objectives.segmentation import BabylmSegments
    from hatchery.tokenization.token_reader import TokenShards

    started = time.monotonic()
    shards = TokenShards.open(tokens, TRAINING_SPLIT)
    opened = time.monotonic() - started
    BabylmSegments(shards, read_tokens.SEQUENCE_LENGTH)
    config = model_config({"family": "ltg", "vocab_size": shards.vocabulary_size, **MODEL})
    initialise_(LanguageModel(config), 1)
    print(json.dumps(opened))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megatokens", type=float, default=130.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", nargs=2, metavar=("TOKENS", "WAY"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(Path(arguments.measure[0]), arguments.measure[1])
        return 0
    read_tokens.SHARDS = 40
    opened: dict[str, float] = {}
    whole: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        tokens = read_tokens.write_shards(Path(name), int(arguments.megatokens * 1e6), 500)
        size = sum(path.stat().st_size for path in tokens.parent.iterdir())
        for way in WAYS * arguments.rounds:
            started = time.monotonic()
            command = [sys.executable, __file__, "--measure", str(tokens), way]
            result = subprocess.run(command, check=True, capture_output=True, text=True)
            whole[way] = min(time.monotonic() - started, whole.get(way, float("inf")))
            opened[way] = min(json.loads(result.stdout), opened.get(way, float("inf")))
    print(f"{arguments.megatokens:.0f} million tokens, {size / 1e6:,.0f} MB")
    for way in WAYS:
        print(f"{way + ':':11} shards open after {opened[way]:.2f} s, the start takes {whole[way]:.2f} s")
    share, before = ((whole[way] - whole["without"]) / whole["without"] for way in ("ahead", "on opening"))
    print(f"the comparison adds {share:.1%} to the start, on opening {before:.1%}, limit {LIMIT:.0%}")
    return 0 if share <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
