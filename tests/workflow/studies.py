"""A study of the tiny experiment and a copy of it: its files in a project folder."""

COPY = "config/experiments/copied.yaml"
STUDY = "config/studies/side.yaml"
PAGE = "results/side/index.html"
TEXT = "description: Side by side.\nexperiments: [tiny, copied]\nanalyses:\n  comparison: {}\n"
