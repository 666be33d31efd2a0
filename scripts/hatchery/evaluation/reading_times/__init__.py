"""Reading times: the gain in likelihood of regressions of the times by a model's surprisals."""
