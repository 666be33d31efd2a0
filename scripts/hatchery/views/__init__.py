"""What people see of an experiment: figures, tables of the papers, summaries, cards and the page."""
