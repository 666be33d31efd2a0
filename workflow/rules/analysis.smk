localrules:
    summarise,
    plot_learning_curves,
    plot_layer_weights,
    plot_phenomena,
    plot_task_scores,
    plot_bias_violins,
    plot_feature_dots,
    plot_layer_contributions,
    write_page,
    write_run_card,
    write_tables,
    write_provenance,


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
        **LAYOUT.resources("plot_learning_curves"),
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
        **LAYOUT.resources("plot_layer_weights"),
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
        minimal_pairs=lambda wildcards: LAYOUT.minimal_pairs(
            wildcards.experiment
        ).values(),
        published=lambda wildcards: LAYOUT.published(wildcards.experiment),
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
        **LAYOUT.resources("plot_phenomena"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "plot_phenomena", experiment=wildcards.experiment
        ),
        minimal_pairs=lambda wildcards: arguments(
            "--minimal-pairs", LAYOUT.minimal_pairs(wildcards.experiment)
        ),
        published=lambda wildcards, input: (
            f"--published {input.published}" if input.published else ""
        ),
    shell:
        "python scripts/plot_phenomena.py --settings {params.settings:q} {params.minimal_pairs} {params.published}"
        " --output {output} > {log} 2>&1"


rule plot_task_scores:
    input:
        finetuning=lambda wildcards: LAYOUT.finetuning_outputs(
            wildcards.experiment, LAYOUT.finetuned(wildcards.experiment)
        ),
        published=lambda wildcards: LAYOUT.published(wildcards.experiment),
    output:
        report(
            "results/{experiment}/figures/task_scores.svg",
            caption="../report/task_scores.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "task scores"},
        ),
    log:
        "logs/plot_task_scores/{experiment}.log",
    benchmark:
        "results/benchmarks/plot_task_scores/{experiment}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        **LAYOUT.resources("plot_task_scores"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "plot_task_scores", experiment=wildcards.experiment
        ),
        finetuning=lambda wildcards: arguments(
            "--finetuning", LAYOUT.finetuned(wildcards.experiment)
        ),
        published=lambda wildcards, input: (
            f"--published {input.published}" if input.published else ""
        ),
    shell:
        "python scripts/plot_task_scores.py --settings {params.settings:q} {params.finetuning} {params.published}"
        " --output {output} > {log} 2>&1"


rule plot_bias_violins:
    input:
        finetuning=lambda wildcards: LAYOUT.finetuning_outputs(
            wildcards.experiment, LAYOUT.ambiguous(wildcards.experiment)
        ),
        published=lambda wildcards: LAYOUT.published(wildcards.experiment),
    output:
        report(
            "results/{experiment}/figures/bias_violins.svg",
            caption="../report/bias_violins.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "linguistic bias"},
        ),
    log:
        "logs/plot_bias_violins/{experiment}.log",
    benchmark:
        "results/benchmarks/plot_bias_violins/{experiment}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        **LAYOUT.resources("plot_bias_violins"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "plot_bias_violins", experiment=wildcards.experiment
        ),
        finetuning=lambda wildcards: arguments(
            "--finetuning", LAYOUT.ambiguous(wildcards.experiment)
        ),
        published=lambda wildcards, input: (
            f"--published {input.published}" if input.published else ""
        ),
    shell:
        "python scripts/plot_bias_violins.py --settings {params.settings:q} {params.finetuning} {params.published}"
        " --output {output} > {log} 2>&1"


rule plot_feature_dots:
    input:
        finetuning=lambda wildcards: LAYOUT.finetuning_outputs(
            wildcards.experiment, LAYOUT.ambiguous(wildcards.experiment)
        ),
        published=lambda wildcards: LAYOUT.published(wildcards.experiment),
    output:
        report(
            "results/{experiment}/figures/feature_dots.svg",
            caption="../report/feature_dots.rst",
            category="Figures",
            labels={
                "experiment": "{experiment}",
                "figure": "linguistic bias by features",
            },
        ),
    log:
        "logs/plot_feature_dots/{experiment}.log",
    benchmark:
        "results/benchmarks/plot_feature_dots/{experiment}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        **LAYOUT.resources("plot_feature_dots"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "plot_feature_dots", experiment=wildcards.experiment
        ),
        finetuning=lambda wildcards: arguments(
            "--finetuning", LAYOUT.ambiguous(wildcards.experiment)
        ),
        published=lambda wildcards, input: (
            f"--published {input.published}" if input.published else ""
        ),
    shell:
        "python scripts/plot_feature_dots.py --settings {params.settings:q} {params.finetuning} {params.published}"
        " --output {output} > {log} 2>&1"


rule plot_layer_contributions:
    input:
        lambda wildcards: LAYOUT.finetuning_outputs(
            wildcards.experiment, LAYOUT.probed(wildcards.experiment)
        ),
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
        **LAYOUT.resources("plot_layer_contributions"),
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
        summary="results/{experiment}/summary.csv",
        markdown="results/{experiment}/summary.md",
        provenance="results/{experiment}/provenance.html",
        figures=lambda wildcards: LAYOUT.figures(wildcards.experiment).values(),
        cards=lambda wildcards: LAYOUT.cards(wildcards.experiment).values(),
        pretraining=lambda wildcards: LAYOUT.pretrained(wildcards.experiment).values(),
        run_cards=lambda wildcards: LAYOUT.run_cards(wildcards.experiment).values(),
        tables=lambda wildcards: LAYOUT.paper_tables(wildcards.experiment),
    output:
        "results/{experiment}/index.html",
    log:
        "logs/write_page/{experiment}.log",
    benchmark:
        "results/benchmarks/write_page/{experiment}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        **LAYOUT.resources("write_page"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "write_page", experiment=wildcards.experiment
        ),
        cards=lambda wildcards: arguments("--card", LAYOUT.cards(wildcards.experiment)),
        pretraining=lambda wildcards: arguments(
            "--pretraining", LAYOUT.pretrained(wildcards.experiment)
        ),
        run_cards=lambda wildcards: arguments(
            "--run-card", LAYOUT.run_cards(wildcards.experiment)
        ),
        tables=lambda wildcards, input: (
            f"--tables {input.tables}" if input.tables else ""
        ),
    shell:
        "python scripts/write_page.py --settings {params.settings:q} --summary {input.summary}"
        " --markdown {input.markdown} --provenance {input.provenance} --figures {input.figures} {params.cards}"
        " {params.pretraining} {params.run_cards} {params.tables} --output {output} > {log} 2>&1"


rule write_run_card:
    input:
        pretraining="results/{experiment}/pretraining/{cell}/manifest.json",
        cost="results/{experiment}/cost.csv",
    output:
        page=report(
            "results/{experiment}/run_cards/{cell}.html",
            caption="../report/run_card.rst",
            category="Run cards",
            labels={"experiment": "{experiment}", "model": "{cell}"},
        ),
        markdown="results/{experiment}/run_cards/{cell}.md",
        drawing="results/{experiment}/run_cards/{cell}.svg",
    log:
        "logs/write_run_card/{experiment}/{cell}.log",
    benchmark:
        "results/benchmarks/write_run_card/{experiment}/{cell}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        **LAYOUT.resources("write_run_card"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "write_run_card", experiment=wildcards.experiment, cell=wildcards.cell
        ),
    shell:
        "python scripts/write_run_card.py --settings {params.settings:q} --pretraining {input.pretraining}"
        " --cost {input.cost} --output {output.page} --markdown {output.markdown} --drawing {output.drawing}"
        " > {log} 2>&1"


rule write_provenance:
    input:
        "results/{experiment}/summary.csv",
    output:
        report(
            "results/{experiment}/provenance.html",
            caption="../report/provenance.rst",
            category="Provenance",
            labels={"experiment": "{experiment}", "page": "every number"},
        ),
    log:
        "logs/write_provenance/{experiment}.log",
    benchmark:
        "results/benchmarks/write_provenance/{experiment}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        **LAYOUT.resources("write_provenance"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "write_provenance", experiment=wildcards.experiment
        ),
    shell:
        "python scripts/write_provenance.py --settings {params.settings:q} --summary {input}"
        " --output {output} > {log} 2>&1"


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
