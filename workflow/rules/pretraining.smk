# The run folder with the checkpoints is no declared output: Snakemake deletes those before every attempt, and a killed
# job is to go on where it stopped. What is declared is the manifest of the exported model. Its place is named by what
# the model is made from: results/<experiment>/pretraining/<model> is a link to it.
rule pretrain:
    input:
        tokens=lambda wildcards: LAYOUT.given(wildcards.model, "tokens"),
        tokenizer=lambda wildcards: LAYOUT.given(wildcards.model, "tokenizer"),
        initial=lambda wildcards: LAYOUT.given(wildcards.model, "initial_model"),
    output:
        report(
            "results/models/{model}/manifest.json",
            caption="../report/pretraining.rst",
            category="Provenance",
            subcategory="Pretraining",
            labels=lambda wildcards: {"model": LAYOUT.title(wildcards.model)},
        ),
    log:
        "logs/pretrain/{model}.log",
    benchmark:
        "results/benchmarks/pretrain/{model}.tsv"
    conda:
        "../../envs/pretraining.yaml"
    threads: LAYOUT.threads("pretraining")
    resources:
        **LAYOUT.resources_of_pretraining(),
    params:
        settings=lambda wildcards: LAYOUT.settings_of(wildcards.model),
        call=lambda wildcards: LAYOUT.call_of(wildcards.model),
        # What asks for resources, Snakemake does not record: how to compute, and what a result is called, is no part
        # of it.
        name=lambda wildcards, resources: LAYOUT.title(wildcards.model),
        runtime=lambda wildcards, resources: LAYOUT.runtime("pretrain"),
        launch=lambda wildcards, resources: LAYOUT.launch(
            resources, workflow.is_main_process
        ),
    # Slurm sends its signals to every process of a job: what is said while a checkpoint is saved has to reach the log.
    shell:
        "{params.launch} scripts/pretrain.py @{params.call} --name {params.name:q} --runtime {params.runtime:q}"
        " --checkpoints results/checkpoints --output {output} 2>&1"
        " | (trap '' TERM USR1 INT; exec tee {log})"
