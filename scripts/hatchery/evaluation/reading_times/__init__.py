"""Reading times: how much a model's surprisals increase the likelihood of the times in a regression."""
