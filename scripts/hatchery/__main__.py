"""Runs the program `hatchery` if Python is called as `python -m hatchery`."""

from hatchery.commands import main

if __name__ == "__main__":
    main()
