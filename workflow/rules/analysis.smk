localrules:
    summarise,
    write_tables,


rule summarise:
    input:
        pretraining=lambda wildcards: LAYOUT.pretrained(wildcards.experiment).values(),
        minimal_pairs=lambda wildcards: LAYOUT.minimal_pairs(
            wildcards.experiment
        ).values(),
        finetuning=lambda wildcards: LAYOUT.finetuning_outputs(
            wildcards.experiment, LAYOUT.finetuned(wildcards.experiment)
        ),
        perplexity=lambda wildcards: LAYOUT.perplexities(wildcards.experiment).values(),
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
        pretraining=lambda wildcards: arguments(
            "--pretraining", LAYOUT.pretrained(wildcards.experiment)
        ),
        minimal_pairs=lambda wildcards: arguments(
            "--minimal-pairs", LAYOUT.minimal_pairs(wildcards.experiment)
        ),
        finetuning=lambda wildcards: arguments(
            "--finetuning", LAYOUT.finetuned(wildcards.experiment)
        ),
        perplexity=lambda wildcards: arguments(
            "--perplexity", LAYOUT.perplexities(wildcards.experiment)
        ),
        baselines=lambda wildcards: arguments(
            "--baseline", LAYOUT.baselines(wildcards.experiment)
        ),
        published=lambda wildcards, input: (
            f"--published {input.published}" if input.published else ""
        ),
    shell:
        "python scripts/summarise.py --settings {params.settings:q} {params.pretraining} {params.minimal_pairs}"
        " {params.finetuning} {params.perplexity} {params.baselines} {params.published} --output {output.csv} --parquet {output.parquet}"
        " --markdown {output.markdown} --text {output.text} 2>&1 | tee {log}"


rule write_tables:
    input:
        summary="results/{experiment}/summary.csv",
        published=lambda wildcards: LAYOUT.table_numbers(wildcards.experiment),
        layout=lambda wildcards: LAYOUT.table_layout(wildcards.experiment),
        finetuning=lambda wildcards: LAYOUT.finetuning_outputs(
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
        finetuning=lambda wildcards: arguments(
            "--finetuning", LAYOUT.finetuned(wildcards.experiment)
        ),
        cards=lambda wildcards: arguments(
            "--card",
            {
                corpus: f"results/cards/{corpus}/statistics.csv"
                for corpus in LAYOUT.cards(wildcards.experiment)
            },
        ),
        layers=lambda wildcards, input: (
            f"--layer-contributions {input.layers}" if input.layers else ""
        ),
    shell:
        "python scripts/write_tables.py --settings {params.settings:q} --summary {input.summary}"
        " --published {input.published} --layout {input.layout} --sizes {input.sizes} {params.finetuning}"
        " {params.cards} {params.layers} --output {output.manifest} > {log} 2>&1"
