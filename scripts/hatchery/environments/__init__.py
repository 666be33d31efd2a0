"""The software environments: one hash-locked `.venv` that serves every rule, and one conda environment per rule group.

`requirements.in` is written by hand; the lock files and `envs/*.yaml` are made from it and from the imports of the
scripts, so the two ways to install Hatchery cannot drift apart.
"""
