"""From the outputs of runs to tidy tables, and from tidy tables to means, verdicts and fitted laws."""
