# Reads settings only, so that the cost of an experiment is known before any of its data is there.
rule write_cost:
    output:
        csv="results/{experiment}/cost.csv",
        markdown="results/{experiment}/cost.md",
        page="results/{experiment}/cost.html",
        checksums="results/{experiment}/cost.sha256",
    shell:
        "python scripts/run.py write_cost {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


# The run folder with the checkpoints is no declared output: Snakemake deletes those before every attempt, and a killed
# job is to go on where it stopped. What is declared is the manifest of the exported model. Its place is named by what
# the model is made from: results/<experiment>/pretraining/<model> is a link to it.
rule pretrain:
    input:
        inputs("pretrain"),
    output:
        "results/models/{model}/manifest.json",
    wildcard_constraints:
        # Not what others pretrained.
        model=r"[A-Za-z0-9][A-Za-z0-9_]*-[0-9a-f]{16}",
    # Slurm sends its signals to every process of a job: what is said while a checkpoint is saved has to reach the log.
    shell:
        "{params.launch} scripts/run.py pretrain {params.call} {params.given:q} 2>&1"
        " | (trap '' TERM USR1 INT; exec tee {log})"


# A model of inside a training lies beside the finished one. With a manifest of its own, it is evaluated by the rules that
# evaluate that.
rule export_milestone:
    input:
        inputs("export_milestone"),
    output:
        "results/models/{model}/milestones/{milestone}/manifest.json",
    wildcard_constraints:
        model=r"[A-Za-z0-9][A-Za-z0-9_]*-[0-9a-f]{16}",
    shell:
        "python scripts/run.py export_milestone {params.call} {params.given:q}"
        " 2>&1 | tee {log}"
