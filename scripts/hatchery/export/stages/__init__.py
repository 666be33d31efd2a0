"""The stages whose code is in this package, one file each."""
