"""The figures of the report, with one module per figure; every figure draws results as one SVG file."""
