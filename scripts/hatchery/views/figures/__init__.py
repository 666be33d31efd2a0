"""The figures of the report, one module per figure. Every figure is one SVG file."""
