# The only rule whose job reads what single runs wrote; all views read its tables.
rule collect_measurements:
    input:
        models=paths(RESULTS.models),
        evaluations=paths(RESULTS.evaluations),
        tokens=paths(RESULTS.tokens),
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
        experiment=RESULTS.names_of_experiments(),
    shell:
        "python scripts/run.py collect_measurements @{params.call}"
        " --output {output.measurements} 2>&1 | tee {log}"


rule summarise:
    input:
        measurements="results/{experiment}/measurements.parquet",
        published=paths(RESULTS.published),
    output:
        csv="results/{experiment}/summary.csv",
        parquet="results/{experiment}/summary.parquet",
        markdown="results/{experiment}/summary.md",
        text="results/{experiment}/summary.txt",
        notes="results/{experiment}/summary_notes.json",
        checksums="results/{experiment}/summary.sha256",
        notes_checksums="results/{experiment}/summary_notes.sha256",
    shell:
        "python scripts/run.py summarise @{params.call} --measurements {input.measurements}"
        " --output {output.csv} --parquet {output.parquet}"
        " --markdown {output.markdown} --text {output.text} --notes {output.notes} 2>&1 | tee {log}"


rule write_tables:
    input:
        summary="results/{experiment}/summary.parquet",
        published=paths(RESULTS.table_numbers),
        layout=paths(RESULTS.table_layout),
        measurements="results/{experiment}/measurements.parquet",
        layers="results/{experiment}/layers.parquet",
        cards=paths(RESULTS.cards),
        tasks=paths(RESULTS.tuned_tasks),
        sizes="config/published/corpora/sizes.csv",
    output:
        manifest="results/{experiment}/paper_tables/manifest.json",
        page="results/{experiment}/paper_tables/tables.html",
    shell:
        "python scripts/run.py write_tables @{params.call} --summary {input.summary}"
        " --measurements {input.measurements} --layers {input.layers}"
        " --published {input.published} --layout {input.layout} --sizes {input.sizes}"
        " --output {output.manifest} 2>&1 | tee {log}"
