"""The stages of this package, one file per stage."""
