"""The figures of the report, one module each; every one turns manifests into a single SVG."""
