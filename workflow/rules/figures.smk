from hatchery.views.figures.registry import declared_figures

stage = LAYOUT.stage("draw_figure")


rule draw_figure:
    input:
        stage.given(),
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
        stage.log,
    benchmark:
        stage.benchmark
    wildcard_constraints:
        figure="|".join(declared_figures()),
    conda:
        stage.conda
    resources:
        **stage.resources,
    params:
        **stage.params,
        text=lambda wildcards: LAYOUT.figure_text(
            wildcards.experiment, wildcards.figure
        ),
    shell:
        "python scripts/draw_figure.py @{params.call} --output {output.figure}"
        " 2>&1 | tee {log}"
