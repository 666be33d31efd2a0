from hatchery.views.figures.registry import declared_figures


rule draw_figure:
    input:
        inputs("draw_figure"),
    output:
        figure="results/{experiment}/figures/{figure}.svg",
        pdf="results/{experiment}/figures/{figure}.pdf",
        checksums="results/{experiment}/figures/{figure}.sha256",
    wildcard_constraints:
        figure="|".join(declared_figures()),
    params:
        # It stands on the page: with a new text, figure and page are made again.
        text=lambda wildcards: declared_figures()[wildcards.figure].page_text,
    shell:
        "python scripts/run.py draw_figure {params.call} {params.given:q}"
        " 2>&1 | tee {log}"
