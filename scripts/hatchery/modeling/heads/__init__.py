"""Heads for labelled tasks, composed of a pooling, a transform, an output layer and a target. Every head works with
every encoder.
"""
