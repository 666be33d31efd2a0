from hatchery.analysis.figures.registry import declared_figures


localrules:
    draw_figure,
    tabulate_layer_contributions,


rule draw_figure:
    input:
        results=lambda wildcards: LAYOUT.figure_inputs(
            wildcards.experiment, wildcards.figure
        ),
        published=lambda wildcards: LAYOUT.marked(
            wildcards.experiment, wildcards.figure
        ),
    output:
        figure=report(
            "results/{experiment}/figures/{figure}.svg",
            caption="../report/figure.rst",
            category="Figures",
            labels=lambda wildcards: {
                "experiment": wildcards.experiment,
                "figure": declared_figures()[wildcards.figure].title.lower(),
            },
        ),
        checksums="results/{experiment}/figures/{figure}.sha256",
    log:
        "logs/draw_figure/{experiment}/{figure}.log",
    benchmark:
        "results/benchmarks/draw_figure/{experiment}/{figure}.tsv"
    wildcard_constraints:
        figure="|".join(declared_figures()),
    conda:
        "../../envs/analysis.yaml"
    resources:
        **LAYOUT.resources("draw_figure"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "draw_figure", experiment=wildcards.experiment, figure=wildcards.figure
        ),
        call=lambda wildcards: LAYOUT.call(
            "draw_figure",
            {
                "results": LAYOUT.drawn(wildcards.experiment, wildcards.figure),
                "published": LAYOUT.marked(wildcards.experiment, wildcards.figure),
            },
            experiment=wildcards.experiment,
            figure=wildcards.figure,
        ),
        text=lambda wildcards: LAYOUT.figure_text(
            wildcards.experiment, wildcards.figure
        ),
    shell:
        "python scripts/draw_figure.py @{params.call} --output {output.figure}"
        " 2>&1 | tee {log}"


rule tabulate_layer_contributions:
    input:
        lambda wildcards: LAYOUT.finetuning_inputs(
            wildcards.experiment, LAYOUT.probed(wildcards.experiment)
        ),
    output:
        table="results/{experiment}/tables/layer_contributions.csv",
        checksums="results/{experiment}/tables/layer_contributions.sha256",
    log:
        "logs/tabulate_layer_contributions/{experiment}.log",
    benchmark:
        "results/benchmarks/tabulate_layer_contributions/{experiment}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        **LAYOUT.resources("tabulate_layer_contributions"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "tabulate_layer_contributions", experiment=wildcards.experiment
        ),
        call=lambda wildcards: LAYOUT.call(
            "tabulate_layer_contributions",
            {"finetuning": LAYOUT.probed(wildcards.experiment)},
            experiment=wildcards.experiment,
        ),
    shell:
        "python scripts/tabulate_layer_contributions.py @{params.call}"
        " --output {output.table} 2>&1 | tee {log}"
