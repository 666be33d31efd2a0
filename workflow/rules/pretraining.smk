# The run folder with the checkpoints is no declared output: Snakemake deletes those before every attempt, and a killed
# job is to go on where it stopped. What is declared is the manifest of the exported model.
rule pretrain:
    input:
        settings=lambda wildcards: ancient(
            LAYOUT.frozen_settings(
                "pretrain", experiment=wildcards.experiment, cell=wildcards.cell
            )
        ),
        tokens=lambda wildcards: LAYOUT.experiment_tokens(wildcards.experiment),
        tokenizer=lambda wildcards: LAYOUT.experiment_tokenizer(wildcards.experiment),
        initial=lambda wildcards: LAYOUT.initial_model(
            wildcards.experiment, wildcards.cell
        ),
    output:
        report(
            "results/{experiment}/pretraining/{cell}/manifest.json",
            caption="../report/pretraining.rst",
            category="Provenance",
            subcategory="Pretraining",
            labels={"model": "{cell}"},
        ),
    log:
        "logs/pretrain/{experiment}/{cell}.log",
    benchmark:
        "results/benchmarks/pretrain/{experiment}/{cell}.tsv"
    conda:
        "../../envs/pretraining.yaml"
    threads: LAYOUT.threads("pretraining")
    resources:
        **LAYOUT.resources_of_pretraining(),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "pretrain", experiment=wildcards.experiment, cell=wildcards.cell
        ),
        # Asks for resources, so Snakemake does not record it: how to compute is not part of the result.
        runtime=lambda wildcards, resources: LAYOUT.runtime("pretrain"),
        # Asks for resources for the same reason: the input says it already.
        initial=lambda wildcards, resources: LAYOUT.initial_argument(
            wildcards.experiment, wildcards.cell
        ),
        launch=lambda wildcards, resources: LAYOUT.launch(
            resources, workflow.is_main_process
        ),
    # Slurm sends its signals to every process of a job: what is said while a checkpoint is saved has to reach the log.
    shell:
        "{params.launch} scripts/pretrain.py --settings {input.settings} --runtime {params.runtime:q} --tokens {input.tokens}"
        " --tokenizer {input.tokenizer} {params.initial} --checkpoints results/checkpoints --output {output} 2>&1"
        " | (trap '' TERM USR1 INT; exec tee {log})"
