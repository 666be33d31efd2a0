"""The workflow: places of files, arguments, resources and costs of jobs, and the lines on the terminal."""
