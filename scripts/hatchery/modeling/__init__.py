"""The models: encoder families, layer weighting, heads, and the file format of the weights."""
