"""The models: families of encoders, layer weighting as a value passed to them, heads, and the weights file."""
