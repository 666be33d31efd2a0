"""What the Snakefile holds in its hand: where files lie, what jobs are given, and what they ask of the machine."""
