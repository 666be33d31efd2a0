"""The vocabulary of child-directed speech (AO-CHILDES), and the selection of text that contains only its words."""
