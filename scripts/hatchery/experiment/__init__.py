"""The interface of Hatchery: YAML files, validated, with messages that say what to write instead."""
