"""From a number to the raw bytes behind it, and from a change of the configuration to what it would run again."""
