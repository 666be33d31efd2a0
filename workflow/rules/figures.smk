from hatchery.analysis.figures.registry import declared_figures


localrules:
    draw_figure,


rule draw_figure:
    input:
        lambda wildcards: LAYOUT.figure_tables(
            wildcards.experiment, wildcards.figure
        ).values(),
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
            {"tables": LAYOUT.figure_tables(wildcards.experiment, wildcards.figure)},
            experiment=wildcards.experiment,
            figure=wildcards.figure,
        ),
        text=lambda wildcards: LAYOUT.figure_text(
            wildcards.experiment, wildcards.figure
        ),
    shell:
        "python scripts/draw_figure.py @{params.call} --output {output.figure}"
        " 2>&1 | tee {log}"
