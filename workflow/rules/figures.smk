from hatchery.analysis.figures.registry import declared_figures

stage = LAYOUT.stage("draw_figure")


rule draw_figure:
    input:
        results=stage.given("results"),
        published=stage.given("published"),
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


stage = LAYOUT.stage("tabulate_layer_contributions")


rule tabulate_layer_contributions:
    input:
        stage.given(),
    output:
        table="results/{experiment}/tables/layer_contributions.csv",
        checksums="results/{experiment}/tables/layer_contributions.sha256",
    log:
        stage.log,
    benchmark:
        stage.benchmark
    conda:
        stage.conda
    resources:
        **stage.resources,
    params:
        **stage.params,
    shell:
        "python scripts/tabulate_layer_contributions.py @{params.call}"
        " --output {output.table} 2>&1 | tee {log}"
