"""A call of Snakemake from outside: its software, its words on the terminal, its interruption."""
