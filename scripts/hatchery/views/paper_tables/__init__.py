"""The tables of the papers in the papers' layout: our numbers next to the printed ones."""
