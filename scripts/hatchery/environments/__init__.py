"""The software environments: one hash-locked `.venv` that serves every rule, and one conda environment per rule group.

`requirements.in` is written by hand; `requirements.lock` is made from it, and `envs/*.yaml` from that and the imports
of the scripts, so the two ways to install Hatchery cannot drift apart. `make env` is `scripts/install_environment.sh`.
"""
