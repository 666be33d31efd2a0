"""The stage that writes the generated sources."""
