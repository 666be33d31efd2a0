"""Reading times: the gain in the likelihood of reading times if a regression also contains a model's surprisals."""
