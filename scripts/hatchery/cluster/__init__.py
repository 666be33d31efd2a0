"""What lies between the workflow and a Slurm cluster: what is asked of it, whether it can give it, and its logs."""
