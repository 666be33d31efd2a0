localrules:
    summarise,
    plot_learning_curves,
    plot_layer_weights,
    plot_phenomena,
    plot_layer_contributions,
    write_page,


rule summarise:
    input:
        pretraining=lambda wildcards: LAYOUT.pretrained(wildcards.experiment).values(),
        minimal_pairs=lambda wildcards: LAYOUT.minimal_pairs(
            wildcards.experiment
        ).values(),
        finetuning=lambda wildcards: LAYOUT.finetuned(wildcards.experiment).values(),
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
    log:
        "logs/summarise/{experiment}.log",
    benchmark:
        "results/benchmarks/summarise/{experiment}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
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


rule plot_learning_curves:
    input:
        lambda wildcards: LAYOUT.pretrained(wildcards.experiment).values(),
    output:
        report(
            "results/{experiment}/figures/learning_curves.svg",
            caption="../report/learning_curves.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "learning curves"},
        ),
    log:
        "logs/plot_learning_curves/{experiment}.log",
    benchmark:
        "results/benchmarks/plot_learning_curves/{experiment}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "plot_learning_curves", experiment=wildcards.experiment
        ),
        pretraining=lambda wildcards: arguments(
            "--pretraining", LAYOUT.pretrained(wildcards.experiment)
        ),
    shell:
        "python scripts/plot_learning_curves.py --settings {params.settings:q} {params.pretraining} --output {output}"
        " > {log} 2>&1"


rule plot_layer_weights:
    input:
        lambda wildcards: LAYOUT.pretrained(wildcards.experiment).values(),
    output:
        report(
            "results/{experiment}/figures/layer_weights.svg",
            caption="../report/layer_weights.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "layer weights"},
        ),
    log:
        "logs/plot_layer_weights/{experiment}.log",
    benchmark:
        "results/benchmarks/plot_layer_weights/{experiment}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "plot_layer_weights", experiment=wildcards.experiment
        ),
        pretraining=lambda wildcards: arguments(
            "--pretraining", LAYOUT.pretrained(wildcards.experiment)
        ),
    shell:
        "python scripts/plot_layer_weights.py --settings {params.settings:q} {params.pretraining} --output {output}"
        " > {log} 2>&1"


rule plot_phenomena:
    input:
        lambda wildcards: LAYOUT.minimal_pairs(wildcards.experiment).values(),
    output:
        report(
            "results/{experiment}/figures/phenomena.svg",
            caption="../report/phenomena.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "phenomena"},
        ),
    log:
        "logs/plot_phenomena/{experiment}.log",
    benchmark:
        "results/benchmarks/plot_phenomena/{experiment}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "plot_phenomena", experiment=wildcards.experiment
        ),
        minimal_pairs=lambda wildcards: arguments(
            "--minimal-pairs", LAYOUT.minimal_pairs(wildcards.experiment)
        ),
    shell:
        "python scripts/plot_phenomena.py --settings {params.settings:q} {params.minimal_pairs} --output {output}"
        " > {log} 2>&1"


rule plot_layer_contributions:
    input:
        lambda wildcards: LAYOUT.probed(wildcards.experiment).values(),
    output:
        figure=report(
            "results/{experiment}/figures/layer_contributions.svg",
            caption="../report/layer_contributions.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "layer contributions"},
        ),
        table="results/{experiment}/tables/layer_contributions.csv",
    log:
        "logs/plot_layer_contributions/{experiment}.log",
    benchmark:
        "results/benchmarks/plot_layer_contributions/{experiment}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "plot_layer_contributions", experiment=wildcards.experiment
        ),
        finetuning=lambda wildcards: arguments(
            "--finetuning", LAYOUT.probed(wildcards.experiment)
        ),
    shell:
        "python scripts/plot_layer_contributions.py --settings {params.settings:q} {params.finetuning}"
        " --output {output.figure} --table {output.table} > {log} 2>&1"


rule write_page:
    input:
        markdown="results/{experiment}/summary.md",
        figures=lambda wildcards: LAYOUT.figures(wildcards.experiment).values(),
        cards=lambda wildcards: LAYOUT.cards(wildcards.experiment).values(),
    output:
        "results/{experiment}/index.html",
    log:
        "logs/write_page/{experiment}.log",
    benchmark:
        "results/benchmarks/write_page/{experiment}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        mem_mb=500,
        runtime=10,
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "write_page", experiment=wildcards.experiment
        ),
        cards=lambda wildcards: arguments("--card", LAYOUT.cards(wildcards.experiment)),
    shell:
        "python scripts/write_page.py --settings {params.settings:q} --markdown {input.markdown}"
        " --figures {input.figures} {params.cards} --output {output} > {log} 2>&1"
