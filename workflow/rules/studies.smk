stage = LAYOUT.stage("join_experiments")


# The tables of a study have the same places as those of an experiment, so that all views are made of them.
rule join_experiments:
    input:
        stage.given(),
    output:
        measurements="results/{experiment}/measurements.parquet",
        runs="results/{experiment}/runs.parquet",
        curves="results/{experiment}/curves.parquet",
        layers="results/{experiment}/layers.parquet",
        checksums=expand(
            "results/{{experiment}}/{table}.sha256",
            table=["measurements", "runs", "curves", "layers"],
        ),
    log:
        stage.log,
    benchmark:
        stage.benchmark
    wildcard_constraints:
        experiment=LAYOUT.names_of_studies(),
    conda:
        stage.conda
    resources:
        **stage.resources,
    params:
        **stage.params,
    shell:
        "python scripts/run.py join_experiments @{params.call} --output {output.measurements} 2>&1 | tee {log}"


stage = LAYOUT.stage("analyse")


rule analyse:
    input:
        stage.given(),
    output:
        "results/{experiment}/analyses/{analysis}/manifest.json",
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
        "python scripts/run.py analyse @{params.call} --output {output} 2>&1 | tee {log}"
