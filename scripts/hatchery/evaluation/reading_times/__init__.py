"""Reading times: the gain in likelihood if a regression of the times includes a model's surprisals."""
