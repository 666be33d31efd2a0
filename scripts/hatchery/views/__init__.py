"""Views of an experiment for people: figures, tables of the papers, summaries, cards and the page."""
