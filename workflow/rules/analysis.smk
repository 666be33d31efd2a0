# The only rule whose job reads what single runs wrote; all views read its tables.
rule collect_measurements:
    input:
        inputs("collect_measurements"),
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
        "python scripts/run.py collect_measurements {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


# Surprisals of the texts under `surprisal`, under all models, with the columns of the user's own tables.
rule join_surprisals:
    input:
        inputs("join_surprisals"),
    output:
        parquet="results/{experiment}/surprisals.parquet",
        csv="results/{experiment}/surprisals.csv",
        checksums="results/{experiment}/surprisals.sha256",
    wildcard_constraints:
        experiment=RESULTS.names_of_experiments(),
    shell:
        "python scripts/run.py join_surprisals {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule summarise:
    input:
        inputs("summarise"),
    output:
        csv="results/{experiment}/summary.csv",
        parquet="results/{experiment}/summary.parquet",
        markdown="results/{experiment}/summary.md",
        text="results/{experiment}/summary.txt",
        latex="results/{experiment}/summary.tex",
        notes="results/{experiment}/summary_notes.json",
        checksums="results/{experiment}/summary.sha256",
        notes_checksums="results/{experiment}/summary_notes.sha256",
    shell:
        "python scripts/run.py summarise {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule write_tables:
    input:
        inputs("write_tables"),
    output:
        manifest="results/{experiment}/paper_tables/manifest.json",
        page="results/{experiment}/paper_tables/tables.html",
    shell:
        "python scripts/run.py write_tables {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


# The file that BabyLM's leaderboard takes.
rule write_submission:
    input:
        inputs("write_submission"),
    output:
        json="results/{experiment}/submission.json",
        report="results/{experiment}/submission.md",
        checksums="results/{experiment}/submission.sha256",
    shell:
        "python scripts/run.py write_submission {params.call} {params.given:q}"
        " 2>&1 | tee {log}"
