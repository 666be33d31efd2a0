stage = LAYOUT.stage("write_page")


rule write_page:
    input:
        summary="results/{experiment}/summary.parquet",
        markdown="results/{experiment}/summary.md",
        notes="results/{experiment}/summary_notes.json",
        provenance="results/{experiment}/provenance.html",
        figures=lambda wildcards: LAYOUT.figures(wildcards.experiment).values(),
        cards=stage.given("card"),
        runs="results/{experiment}/runs.parquet",
        curves="results/{experiment}/curves.parquet",
        pretraining=stage.given("pretraining"),
        tables=stage.given("tables"),
        filled=stage.given("filled"),
        cost=lambda wildcards: LAYOUT.costs(wildcards.experiment),
        study=stage.given("part", "analysis"),
    output:
        "results/{experiment}/index.html",
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
        "python scripts/run.py write_page @{params.call} --summary {input.summary}"
        " --markdown {input.markdown} --notes {input.notes} --provenance {input.provenance} --runs {input.runs} --curves {input.curves} --figures {input.figures} --cost {input.cost}"
        " --output {output} 2>&1 | tee {log}"


stage = LAYOUT.stage("write_provenance")


rule write_provenance:
    input:
        "results/{experiment}/summary.parquet",
    output:
        page="results/{experiment}/provenance.html",
        checksums="results/{experiment}/provenance.sha256",
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
        "python scripts/run.py write_provenance @{params.call} --summary {input}"
        " --output {output.page} 2>&1 | tee {log}"


stage = LAYOUT.stage("fill_sentences")


rule fill_sentences:
    input:
        pretraining=lambda wildcards: LAYOUT.kept_manifest(
            wildcards.experiment, "pretraining", wildcards.run
        ),
        corpus=lambda wildcards: LAYOUT.experiment_corpus(wildcards.experiment),
    output:
        "results/{experiment}/filled_sentences/{run}/manifest.json",
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
        "python scripts/run.py fill_sentences @{params.call} --pretraining {input.pretraining}"
        " --corpus {input.corpus} --output {output} 2>&1 | tee {log}"


stage = LAYOUT.stage("export_model")


rule export_model:
    input:
        pretraining=lambda wildcards: LAYOUT.kept_manifest(
            wildcards.experiment, "pretraining", wildcards.run
        ),
        summary="results/{experiment}/summary.parquet",
        filled="results/{experiment}/filled_sentences/{run}/manifest.json",
    output:
        "results/{experiment}/export/{run}/manifest.json",
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
        "python scripts/run.py export_model @{params.call} --pretraining {input.pretraining}"
        " --summary {input.summary} --filled {input.filled} --output {output} 2>&1 | tee {log}"


stage = LAYOUT.stage("list_exported_models")


rule list_exported_models:
    input:
        stage.given(),
    output:
        "results/{experiment}/export/README.md",
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
        "python scripts/run.py list_exported_models @{params.call} --output {output}"
        " 2>&1 | tee {log}"
