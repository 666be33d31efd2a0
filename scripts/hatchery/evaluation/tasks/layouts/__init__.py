"""One file per layout: how the fields of a record become the inputs of a model."""
