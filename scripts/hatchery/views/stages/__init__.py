"""The stages whose code is in this package, with one file per stage."""
