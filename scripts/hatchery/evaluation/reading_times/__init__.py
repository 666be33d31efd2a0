"""Reading times of any readers: how much better regressions predict the times with the surprisals of a model."""
