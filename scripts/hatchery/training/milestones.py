"""Where models of inside a training lie, as whoever plans knows it too: it needs no PyTorch."""

MILESTONES_FOLDER = "milestones"
"""Beside the exported model; `milestones` or `compute.milestones` ask for what is in it."""


def step_name(step: int) -> str:
    """What a folder of a run is called after so many finished steps."""
    return f"step_{step:08d}"


def milestone_place(step: int) -> str:
    """The folder of the model after so many steps, relative to that of the finished one."""
    return f"{MILESTONES_FOLDER}/{step_name(step)}"
