"""The figures of the report, one module each; every figure draws manifests as a single SVG."""
