"""From the outputs of the runs to tidy tables, and from those to means, verdicts and fitted laws."""
