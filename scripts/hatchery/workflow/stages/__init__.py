"""Stages of the package `workflow`, one file each."""
