"""Output for readers of an experiment: figures, tables of the papers, summaries, cards and the page."""
