"""The stages whose code is in this package, a file each."""
