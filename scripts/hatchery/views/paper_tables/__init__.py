"""The tables of the papers in the papers' layout: our numbers with the printed ones beside them."""
