stage = LAYOUT.stage("write_cost")


# Reads settings only, so that the cost of an experiment is known before any of its data is there.
rule write_cost:
    output:
        csv="results/{experiment}/cost.csv",
        markdown="results/{experiment}/cost.md",
        page="results/{experiment}/cost.html",
        checksums="results/{experiment}/cost.sha256",
    log:
        stage.log,
    benchmark:
        stage.benchmark
    conda:
        stage.conda
    resources:
        **stage.resources,
    params:
        **stage.params,
    shell:
        "python scripts/run.py write_cost @{params.call} --output {output.csv}"
        " --markdown {output.markdown} --page {output.page} 2>&1 | tee {log}"


stage = LAYOUT.stage("pretrain")


# The run folder with the checkpoints is no declared output: Snakemake deletes those before every attempt, and a killed
# job is to go on where it stopped. What is declared is the manifest of the exported model. Its place is named by what
# the model is made from: results/<experiment>/pretraining/<model> is a link to it.
rule pretrain:
    input:
        tokens=stage.given("tokens"),
        tokenizer=stage.given("tokenizer"),
        initial=stage.given("initial_model"),
        counts=stage.given("counts"),
    output:
        "results/models/{model}/manifest.json",
    log:
        stage.log,
    benchmark:
        stage.benchmark
    conda:
        stage.conda
    threads: stage.threads
    resources:
        **stage.resources,
    params:
        **stage.params,
        # What asks for resources, Snakemake does not record: how to compute, and what a result is called, is no part
        # of it.
        name=lambda wildcards, resources: LAYOUT.title(wildcards.model),
    # Slurm sends its signals to every process of a job: what is said while a checkpoint is saved has to reach the log.
    shell:
        "{params.launch} scripts/run.py pretrain @{params.call} --name {params.name:q} --runtime {params.runtime:q}"
        " --checkpoints results/checkpoints --output {output} 2>&1"
        " | (trap '' TERM USR1 INT; exec tee {log})"
