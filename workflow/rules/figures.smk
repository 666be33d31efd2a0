from hatchery.views.figures.registry import declared_figures

stage = LAYOUT.stage("draw_figure")


rule draw_figure:
    input:
        stage.given(),
    output:
        figure="results/{experiment}/figures/{figure}.svg",
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
        # The page tells it: with a new text, figure and page are made again.
        text=lambda wildcards: declared_figures()[wildcards.figure].told,
    shell:
        "python scripts/run.py draw_figure @{params.call} --output {output.figure}"
        " 2>&1 | tee {log}"
