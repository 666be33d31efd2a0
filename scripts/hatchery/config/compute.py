"""How jobs compute: threads, devices, cluster resources. None of it belongs to a result, so none of it is tracked."""

from hatchery.config.layout import Layout
from hatchery.storage.checksums import canonical_json


class Compute(Layout):
    """The layout together with what the rules need to start jobs."""

    def threads(self, kind: str) -> int:
        """Processor threads of a `corpus`, `pretraining` or `evaluation` job."""
        return int(self.project.config["compute"][f"{kind}_threads"])

    def cluster(self, key: str) -> int:
        """A number of the `cluster` block."""
        return int(self.project.config["cluster"][key])

    def gres(self) -> str | None:
        """Slurm's generic resources of a GPU job; None, which removes the resource, without GPUs."""
        gpus = self.project.config["cluster"]["gpus"]
        return f"gpu:{gpus}" if gpus else None

    def partition(self) -> str | None:
        """Slurm partition of GPU jobs; None leaves the choice to the profile."""
        config = self.project.config["cluster"]
        return config["gpu_partition"] if config["gpus"] else None

    def runtime(self, stage: str) -> str:
        """Canonical JSON of how the job of `stage` computes."""
        compute = self.project.config["compute"]
        match stage:
            case "pretrain":
                keys = [
                    "device",
                    "micro_batch_size",
                    "checkpoint_interval_steps",
                    "keep_checkpoints",
                    "log_interval_steps",
                    "milestones",
                    "background_checkpoints",
                    "workers",
                    "compile",
                    "time_limit_minutes",
                    "grace_seconds",
                    "sinks",
                ]
                return canonical_json({**{k: compute[k] for k in keys}, "threads": compute["pretraining_threads"]})
            case "score_minimal_pairs":
                chosen = {k: compute[k] for k in ["device", "tokens_per_batch"]}
                return canonical_json({**chosen, "threads": compute["evaluation_threads"]})
            case "finetune":
                chosen = {k: compute[k] for k in ["device", "frozen_layers_mib"]}
                return canonical_json({**chosen, "threads": compute["evaluation_threads"]})
            case _:
                raise ValueError(f"the stage {stage!r} takes no runtime settings")
