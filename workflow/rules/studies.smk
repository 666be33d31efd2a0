# The tables of a study have the same places as those of an experiment, so that all views are made of them.
rule join_experiments:
    input:
        inputs("join_experiments"),
    output:
        measurements="results/{experiment}/measurements.parquet",
        runs="results/{experiment}/runs.parquet",
        curves="results/{experiment}/curves.parquet",
        layers="results/{experiment}/layers.parquet",
        checksums=expand(
            "results/{{experiment}}/{table}.sha256",
            table=["measurements", "runs", "curves", "layers"],
        ),
    wildcard_constraints:
        experiment=RESULTS.names_of_studies(),
    shell:
        "python scripts/run.py join_experiments {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule analyse:
    input:
        inputs("analyse"),
    output:
        "results/{experiment}/analyses/{analysis}/manifest.json",
    shell:
        "python scripts/run.py analyse {params.call} {params.given:q} 2>&1 | tee {log}"
