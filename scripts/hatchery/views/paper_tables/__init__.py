"""The tables of the papers in the papers' layout, with our numbers next to the printed numbers."""
