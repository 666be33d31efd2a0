"""Output of an experiment for human readers: figures, tables of the papers, summaries, cards and the page."""
