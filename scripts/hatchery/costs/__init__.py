"""What an experiment will cost: operations, time and disk, reckoned before there is any run."""
