"""`python -m hatchery` is the program `hatchery`."""

from hatchery.commands import main

if __name__ == "__main__":
    main()
