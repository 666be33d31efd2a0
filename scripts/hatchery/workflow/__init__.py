"""The workflow: paths of files, arguments, resources and costs of jobs, and output on the terminal."""
