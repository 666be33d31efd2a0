"""The stages of the workflow, one record each: everything that is said about a stage besides its inputs and outputs.

A record holds the version, the part of the configuration that the stage depends on, what its job asks of the machine,
its conda environment, and the inputs that its call names. Rules take their logs, threads, resources and parameters from
it, and the environments their packages. `docs/adding.md` says how to add one.
"""
