"""From the outputs of the runs to the tables, figures and terminal lines that people read."""
