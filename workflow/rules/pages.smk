localrules:
    write_page,
    write_run_card,
    write_provenance,


rule write_page:
    input:
        summary="results/{experiment}/summary.csv",
        markdown="results/{experiment}/summary.md",
        notes="results/{experiment}/summary_notes.json",
        provenance="results/{experiment}/provenance.html",
        figures=lambda wildcards: LAYOUT.figures(wildcards.experiment).values(),
        cards=lambda wildcards: LAYOUT.cards(wildcards.experiment).values(),
        pretraining=lambda wildcards: LAYOUT.all_kept(
            LAYOUT.pretrained(wildcards.experiment)
        ),
        run_cards=lambda wildcards: LAYOUT.run_cards(wildcards.experiment).values(),
        tables=lambda wildcards: LAYOUT.paper_tables(wildcards.experiment),
        filled=lambda wildcards: LAYOUT.filled_sentences(wildcards.experiment).values(),
        cost="results/{experiment}/cost.md",
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
        call=lambda wildcards: LAYOUT.call(
            "write_page",
            {
                "card": LAYOUT.cards(wildcards.experiment),
                "pretraining": LAYOUT.pretrained(wildcards.experiment),
                "run_card": LAYOUT.run_cards(wildcards.experiment),
                "tables": LAYOUT.paper_tables(wildcards.experiment),
                "filled": LAYOUT.filled_sentences(wildcards.experiment),
            },
            experiment=wildcards.experiment,
        ),
    shell:
        "python scripts/write_page.py @{params.call} --summary {input.summary}"
        " --markdown {input.markdown} --notes {input.notes} --provenance {input.provenance} --figures {input.figures} --cost {input.cost}"
        " --output {output} 2>&1 | tee {log}"


rule write_run_card:
    input:
        pretraining=lambda wildcards: LAYOUT.kept_manifest(
            wildcards.experiment, "pretraining", wildcards.cell
        ),
        cost="results/{experiment}/cost.csv",
        filled="results/{experiment}/filled_sentences/{cell}/manifest.json",
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
        call=lambda wildcards: LAYOUT.call(
            "write_run_card", experiment=wildcards.experiment, cell=wildcards.cell
        ),
    shell:
        "python scripts/write_run_card.py @{params.call} --pretraining {input.pretraining}"
        " --cost {input.cost} --filled {input.filled} --output {output.page} --markdown {output.markdown} --drawing {output.drawing}"
        " 2>&1 | tee {log}"


rule write_provenance:
    input:
        "results/{experiment}/summary.csv",
    output:
        report(
            "results/{experiment}/provenance.html",
            caption="../report/provenance.rst",
            category="Provenance",
            subcategory="Numbers",
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
        call=lambda wildcards: LAYOUT.call(
            "write_provenance", experiment=wildcards.experiment
        ),
    shell:
        "python scripts/write_provenance.py @{params.call} --summary {input}"
        " --output {output} 2>&1 | tee {log}"
