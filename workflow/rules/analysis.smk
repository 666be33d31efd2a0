localrules:
    summarise,
    write_tables,


rule summarise:
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
        notes="results/{experiment}/summary_notes.json",
        checksums="results/{experiment}/summary.sha256",
        notes_checksums="results/{experiment}/summary_notes.sha256",
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
            {
                "pretraining": LAYOUT.pretrained(wildcards.experiment),
                "minimal_pairs": LAYOUT.minimal_pairs(wildcards.experiment),
                "finetuning": LAYOUT.finetuned(wildcards.experiment),
                "perplexity": LAYOUT.perplexities(wildcards.experiment),
                "baseline": LAYOUT.baselines(wildcards.experiment),
                "published": LAYOUT.published(wildcards.experiment),
            },
            experiment=wildcards.experiment,
        ),
    shell:
        "python scripts/summarise.py @{params.call}"
        " --output {output.csv} --parquet {output.parquet}"
        " --markdown {output.markdown} --text {output.text} --notes {output.notes} 2>&1 | tee {log}"


rule write_tables:
    input:
        summary="results/{experiment}/summary.csv",
        published=lambda wildcards: LAYOUT.table_numbers(wildcards.experiment),
        layout=lambda wildcards: LAYOUT.table_layout(wildcards.experiment),
        finetuning=lambda wildcards: LAYOUT.finetuning_inputs(
            wildcards.experiment, LAYOUT.finetuned(wildcards.experiment)
        ),
        layers=lambda wildcards: LAYOUT.contribution_table(wildcards.experiment),
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
                "finetuning": LAYOUT.finetuned(wildcards.experiment),
                "card": {
                    corpus: f"results/cards/{corpus}/statistics.csv"
                    for corpus in LAYOUT.cards(wildcards.experiment)
                },
                "layer_contributions": LAYOUT.contribution_table(wildcards.experiment),
            },
            experiment=wildcards.experiment,
        ),
    shell:
        "python scripts/write_tables.py @{params.call} --summary {input.summary}"
        " --published {input.published} --layout {input.layout} --sizes {input.sizes}"
        " --output {output.manifest} 2>&1 | tee {log}"
