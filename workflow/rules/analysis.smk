localrules:
    collect_measurements,
    summarise,
    write_tables,


# The only rule whose job reads what single runs wrote; all views read its tables.
rule collect_measurements:
    input:
        pretraining=lambda wildcards: LAYOUT.all_kept(
            LAYOUT.pretrained(wildcards.experiment)
        ),
        minimal_pairs=lambda wildcards: LAYOUT.all_kept(
            LAYOUT.minimal_pairs(wildcards.experiment)
        ),
        finetuning=lambda wildcards: LAYOUT.finetuning_inputs(
            wildcards.experiment, LAYOUT.finetuned(wildcards.experiment)
        ),
        perplexity=lambda wildcards: LAYOUT.all_kept(
            LAYOUT.perplexities(wildcards.experiment)
        ),
        baselines=lambda wildcards: LAYOUT.baselines(wildcards.experiment).values(),
        tokens=lambda wildcards: LAYOUT.experiment_tokens(wildcards.experiment),
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
        "logs/collect_measurements/{experiment}.log",
    benchmark:
        "results/benchmarks/collect_measurements/{experiment}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        **LAYOUT.resources("collect_measurements"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "collect_measurements", experiment=wildcards.experiment
        ),
        call=lambda wildcards: LAYOUT.call(
            "collect_measurements",
            {
                "pretraining": LAYOUT.pretrained(wildcards.experiment),
                "minimal_pairs": LAYOUT.minimal_pairs(wildcards.experiment),
                "finetuning": LAYOUT.finetuned(wildcards.experiment),
                "perplexity": LAYOUT.perplexities(wildcards.experiment),
                "baseline": LAYOUT.baselines(wildcards.experiment),
                "tokens": LAYOUT.experiment_tokens(wildcards.experiment),
            },
            experiment=wildcards.experiment,
        ),
    shell:
        "python scripts/collect_measurements.py @{params.call}"
        " --measurements {output.measurements} --runs {output.runs}"
        " --curves {output.curves} --layers {output.layers} 2>&1 | tee {log}"


rule summarise:
    input:
        measurements="results/{experiment}/measurements.parquet",
        published=lambda wildcards: LAYOUT.published(wildcards.experiment),
    output:
        csv=report(
            "results/{experiment}/summary.csv",
            caption="../report/summary.rst",
            category="Results",
            labels={"experiment": "{experiment}", "table": "summary"},
        ),
        parquet="results/{experiment}/summary.parquet",
        markdown="results/{experiment}/summary.md",
        text="results/{experiment}/summary.txt",
        checksums="results/{experiment}/summary.sha256",
    log:
        "logs/summarise/{experiment}.log",
    benchmark:
        "results/benchmarks/summarise/{experiment}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        **LAYOUT.resources("summarise"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "summarise", experiment=wildcards.experiment
        ),
        call=lambda wildcards: LAYOUT.call(
            "summarise",
            {"published": LAYOUT.published(wildcards.experiment)},
            experiment=wildcards.experiment,
        ),
    shell:
        "python scripts/summarise.py @{params.call} --measurements {input.measurements}"
        " --output {output.csv} --parquet {output.parquet}"
        " --markdown {output.markdown} --text {output.text} 2>&1 | tee {log}"


rule write_tables:
    input:
        summary="results/{experiment}/summary.csv",
        published=lambda wildcards: LAYOUT.table_numbers(wildcards.experiment),
        layout=lambda wildcards: LAYOUT.table_layout(wildcards.experiment),
        measurements="results/{experiment}/measurements.parquet",
        layers="results/{experiment}/layers.parquet",
        cards=lambda wildcards: LAYOUT.cards(wildcards.experiment).values(),
        sizes="config/published/corpora/sizes.csv",
    output:
        manifest="results/{experiment}/paper_tables/manifest.json",
        page=report(
            "results/{experiment}/paper_tables/tables.html",
            caption="../report/paper_tables.rst",
            category="Results",
            labels={"experiment": "{experiment}", "table": "tables of the paper"},
        ),
    log:
        "logs/write_tables/{experiment}.log",
    benchmark:
        "results/benchmarks/write_tables/{experiment}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        **LAYOUT.resources("write_tables"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "write_tables", experiment=wildcards.experiment
        ),
        call=lambda wildcards: LAYOUT.call(
            "write_tables",
            {
                "card": {
                    corpus: f"results/cards/{corpus}/statistics.csv"
                    for corpus in LAYOUT.cards(wildcards.experiment)
                },
            },
            experiment=wildcards.experiment,
        ),
    shell:
        "python scripts/write_tables.py @{params.call} --summary {input.summary}"
        " --measurements {input.measurements} --layers {input.layers}"
        " --published {input.published} --layout {input.layout} --sizes {input.sizes}"
        " --output {output.manifest} 2>&1 | tee {log}"
