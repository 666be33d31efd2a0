stage = LAYOUT.stage("collect_measurements")


# The only rule whose job reads what single runs wrote; all views read its tables.
rule collect_measurements:
    input:
        pretraining=stage.given("pretraining"),
        minimal_pairs=stage.given("minimal_pairs"),
        finetuning=stage.given("finetuning"),
        perplexity=stage.given("perplexity"),
        translation=stage.given("translation"),
        baselines=stage.given("baseline"),
        tokens=stage.given("tokens"),
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
        experiment=LAYOUT.names_of_experiments(),
    conda:
        stage.conda
    resources:
        **stage.resources,
    params:
        **stage.params,
    shell:
        "python scripts/run.py collect_measurements @{params.call}"
        " --output {output.measurements} 2>&1 | tee {log}"


stage = LAYOUT.stage("summarise")


rule summarise:
    input:
        measurements="results/{experiment}/measurements.parquet",
        published=stage.given("published"),
    output:
        csv="results/{experiment}/summary.csv",
        parquet="results/{experiment}/summary.parquet",
        markdown="results/{experiment}/summary.md",
        text="results/{experiment}/summary.txt",
        notes="results/{experiment}/summary_notes.json",
        checksums="results/{experiment}/summary.sha256",
        notes_checksums="results/{experiment}/summary_notes.sha256",
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
        "python scripts/run.py summarise @{params.call} --measurements {input.measurements}"
        " --output {output.csv} --parquet {output.parquet}"
        " --markdown {output.markdown} --text {output.text} --notes {output.notes} 2>&1 | tee {log}"


stage = LAYOUT.stage("write_tables")


rule write_tables:
    input:
        summary="results/{experiment}/summary.parquet",
        published=lambda wildcards: LAYOUT.table_numbers(wildcards.experiment),
        layout=lambda wildcards: LAYOUT.table_layout(wildcards.experiment),
        measurements="results/{experiment}/measurements.parquet",
        layers="results/{experiment}/layers.parquet",
        cards=lambda wildcards: LAYOUT.cards(wildcards.experiment).values(),
        sizes="config/published/corpora/sizes.csv",
    output:
        manifest="results/{experiment}/paper_tables/manifest.json",
        page="results/{experiment}/paper_tables/tables.html",
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
        "python scripts/run.py write_tables @{params.call} --summary {input.summary}"
        " --measurements {input.measurements} --layers {input.layers}"
        " --published {input.published} --layout {input.layout} --sizes {input.sizes}"
        " --output {output.manifest} 2>&1 | tee {log}"
