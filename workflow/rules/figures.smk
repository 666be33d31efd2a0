localrules:
    plot_learning_curves,
    plot_layer_weights,
    plot_phenomena,
    plot_task_scores,
    plot_bias_violins,
    plot_feature_dots,
    plot_layer_contributions,


rule plot_learning_curves:
    input:
        lambda wildcards: LAYOUT.all_kept(
            LAYOUT.drawn(wildcards.experiment, LAYOUT.pretrained(wildcards.experiment))
        ),
    output:
        figure=report(
            "results/{experiment}/figures/learning_curves.svg",
            caption="../report/learning_curves.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "learning curves"},
        ),
        checksums="results/{experiment}/figures/learning_curves.sha256",
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
        call=lambda wildcards: LAYOUT.call(
            "plot_learning_curves",
            {
                "pretraining": LAYOUT.drawn(
                    wildcards.experiment, LAYOUT.pretrained(wildcards.experiment)
                )
            },
            experiment=wildcards.experiment,
        ),
    shell:
        "python scripts/plot_learning_curves.py @{params.call} --output {output.figure}"
        " 2>&1 | tee {log}"


rule plot_layer_weights:
    input:
        lambda wildcards: LAYOUT.all_kept(
            LAYOUT.drawn(wildcards.experiment, LAYOUT.pretrained(wildcards.experiment))
        ),
    output:
        figure=report(
            "results/{experiment}/figures/layer_weights.svg",
            caption="../report/layer_weights.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "layer weights"},
        ),
        checksums="results/{experiment}/figures/layer_weights.sha256",
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
        call=lambda wildcards: LAYOUT.call(
            "plot_layer_weights",
            {
                "pretraining": LAYOUT.drawn(
                    wildcards.experiment, LAYOUT.pretrained(wildcards.experiment)
                )
            },
            experiment=wildcards.experiment,
        ),
    shell:
        "python scripts/plot_layer_weights.py @{params.call} --output {output.figure}"
        " 2>&1 | tee {log}"


rule plot_phenomena:
    input:
        minimal_pairs=lambda wildcards: LAYOUT.all_kept(
            LAYOUT.drawn(
                wildcards.experiment, LAYOUT.minimal_pairs(wildcards.experiment)
            )
        ),
        published=lambda wildcards: LAYOUT.published(wildcards.experiment),
    output:
        figure=report(
            "results/{experiment}/figures/phenomena.svg",
            caption="../report/phenomena.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "phenomena"},
        ),
        checksums="results/{experiment}/figures/phenomena.sha256",
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
        call=lambda wildcards: LAYOUT.call(
            "plot_phenomena",
            {
                "minimal_pairs": LAYOUT.drawn(
                    wildcards.experiment, LAYOUT.minimal_pairs(wildcards.experiment)
                ),
                "published": LAYOUT.published(wildcards.experiment),
            },
            experiment=wildcards.experiment,
        ),
    shell:
        "python scripts/plot_phenomena.py @{params.call}"
        " --output {output.figure} 2>&1 | tee {log}"


rule plot_task_scores:
    input:
        finetuning=lambda wildcards: LAYOUT.finetuning_inputs(
            wildcards.experiment,
            LAYOUT.drawn(wildcards.experiment, LAYOUT.finetuned(wildcards.experiment)),
        ),
        published=lambda wildcards: LAYOUT.published(wildcards.experiment),
    output:
        figure=report(
            "results/{experiment}/figures/task_scores.svg",
            caption="../report/task_scores.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "task scores"},
        ),
        checksums="results/{experiment}/figures/task_scores.sha256",
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
        call=lambda wildcards: LAYOUT.call(
            "plot_task_scores",
            {
                "finetuning": LAYOUT.drawn(
                    wildcards.experiment, LAYOUT.finetuned(wildcards.experiment)
                ),
                "published": LAYOUT.published(wildcards.experiment),
            },
            experiment=wildcards.experiment,
        ),
    shell:
        "python scripts/plot_task_scores.py @{params.call}"
        " --output {output.figure} 2>&1 | tee {log}"


rule plot_bias_violins:
    input:
        finetuning=lambda wildcards: LAYOUT.finetuning_inputs(
            wildcards.experiment,
            LAYOUT.drawn(wildcards.experiment, LAYOUT.ambiguous(wildcards.experiment)),
        ),
        published=lambda wildcards: LAYOUT.published(wildcards.experiment),
    output:
        figure=report(
            "results/{experiment}/figures/bias_violins.svg",
            caption="../report/bias_violins.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "linguistic bias"},
        ),
        checksums="results/{experiment}/figures/bias_violins.sha256",
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
        call=lambda wildcards: LAYOUT.call(
            "plot_bias_violins",
            {
                "finetuning": LAYOUT.drawn(
                    wildcards.experiment, LAYOUT.ambiguous(wildcards.experiment)
                ),
                "published": LAYOUT.published(wildcards.experiment),
            },
            experiment=wildcards.experiment,
        ),
    shell:
        "python scripts/plot_bias_violins.py @{params.call}"
        " --output {output.figure} 2>&1 | tee {log}"


rule plot_feature_dots:
    input:
        finetuning=lambda wildcards: LAYOUT.finetuning_inputs(
            wildcards.experiment,
            LAYOUT.drawn(wildcards.experiment, LAYOUT.ambiguous(wildcards.experiment)),
        ),
        published=lambda wildcards: LAYOUT.published(wildcards.experiment),
    output:
        figure=report(
            "results/{experiment}/figures/feature_dots.svg",
            caption="../report/feature_dots.rst",
            category="Figures",
            labels={
                "experiment": "{experiment}",
                "figure": "linguistic bias by features",
            },
        ),
        checksums="results/{experiment}/figures/feature_dots.sha256",
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
        call=lambda wildcards: LAYOUT.call(
            "plot_feature_dots",
            {
                "finetuning": LAYOUT.drawn(
                    wildcards.experiment, LAYOUT.ambiguous(wildcards.experiment)
                ),
                "published": LAYOUT.published(wildcards.experiment),
            },
            experiment=wildcards.experiment,
        ),
    shell:
        "python scripts/plot_feature_dots.py @{params.call}"
        " --output {output.figure} 2>&1 | tee {log}"


rule plot_layer_contributions:
    input:
        lambda wildcards: LAYOUT.finetuning_inputs(
            wildcards.experiment, LAYOUT.probed(wildcards.experiment)
        ),
    output:
        figure=report(
            "results/{experiment}/figures/layer_contributions.svg",
            caption="../report/layer_contributions.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "figure": "layer contributions"},
        ),
        checksums="results/{experiment}/figures/layer_contributions.sha256",
        table="results/{experiment}/tables/layer_contributions.csv",
        table_checksums="results/{experiment}/tables/layer_contributions.sha256",
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
        call=lambda wildcards: LAYOUT.call(
            "plot_layer_contributions",
            {"finetuning": LAYOUT.probed(wildcards.experiment)},
            experiment=wildcards.experiment,
        ),
    shell:
        "python scripts/plot_layer_contributions.py @{params.call}"
        " --output {output.figure} --table {output.table} 2>&1 | tee {log}"
