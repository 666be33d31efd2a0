"""An export that the machine refuses to write ends in one line that names the file, whichever library writes it."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors"])
def test_a_file_that_cannot_be_written_whole_is_named_in_one_line(
    name: str, pretrained, exported, export_settings, tmp_path: Path, repository: Path
) -> None:
    # The limit on the size of a file stands in for a full disk: libraries meet both as a failing write.
    most_bytes = (exported("untied_without_bias") / name).stat().st_size - 1
    output = tmp_path / "model" / "manifest.json"
    script, settings = repository / "scripts" / "run.py", json.dumps(export_settings)
    outcome = subprocess.run(
        [
            sys.executable,
            script,
            "export_model",
            "--settings",
            settings,
            "--pretraining",
            pretrained("untied_without_bias"),
            "--output",
            output,
        ],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 1
    [line] = outcome.stderr.splitlines()
    assert line.startswith(f"error: {output.parent / name}: File too large; the limit on the size of files (ulimit -f)")
    assert not output.exists()
    assert not list(output.parent.glob(".*"))
