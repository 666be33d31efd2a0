"""What studies compute from the results of their experiments: each analysis is one file of this folder."""
