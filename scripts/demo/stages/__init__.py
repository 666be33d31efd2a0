"""The stage of the package `demo`, which writes the generated demo data."""
