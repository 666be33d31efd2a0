"""The stage that writes the generated demo data."""
