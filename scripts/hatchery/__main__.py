"""Runs the program `hatchery` for `python -m hatchery`."""

from hatchery.commands import main

if __name__ == "__main__":
    main()
