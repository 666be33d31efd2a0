"""The parts of the static pages that people read: the frame, figures, tables of numbers, and texts in Markdown."""
