"""Where files lie, what jobs are given, ask of the machine and cost, and what the terminal shows of them."""
