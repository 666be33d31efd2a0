"""The figures of the report, one module each; every figure draws results as one SVG file."""
