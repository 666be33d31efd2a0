rule write_page:
    input:
        summary="results/{experiment}/summary.parquet",
        markdown="results/{experiment}/summary.md",
        notes="results/{experiment}/summary_notes.json",
        provenance="results/{experiment}/provenance.html",
        figures=paths(RESULTS.figures),
        cards=paths(RESULTS.cards),
        runs="results/{experiment}/runs.parquet",
        curves="results/{experiment}/curves.parquet",
        pretraining=paths(RESULTS.pretrained),
        tables=paths(RESULTS.paper_tables),
        filled=paths(RESULTS.filled_sentences),
        cost=paths(RESULTS.costs),
        pages=paths(RESULTS.pages_of_parts),
        analyses=paths(RESULTS.analyses),
    output:
        "results/{experiment}/index.html",
    shell:
        "python scripts/run.py write_page @{params.call} --summary {input.summary}"
        " --markdown {input.markdown} --notes {input.notes} --provenance {input.provenance} --runs {input.runs}"
        " --curves {input.curves} --figures {input.figures} --cost {input.cost}"
        " --output {output} 2>&1 | tee {log}"


rule write_provenance:
    input:
        "results/{experiment}/summary.parquet",
    output:
        page="results/{experiment}/provenance.html",
        checksums="results/{experiment}/provenance.sha256",
    shell:
        "python scripts/run.py write_provenance @{params.call} --summary {input}"
        " --output {output.page} 2>&1 | tee {log}"


rule fill_sentences:
    input:
        model="results/models/{model}/manifest.json",
        corpus=job_paths("corpus"),
    output:
        "results/filled_sentences/{model}/{address}/manifest.json",
    shell:
        "python scripts/run.py fill_sentences @{params.call} --model {input.model}"
        " --output {output} 2>&1 | tee {log}"


rule export_model:
    input:
        pretraining=paths(RESULTS.model),
        summary="results/{experiment}/summary.parquet",
        filled=paths(RESULTS.filled),
    output:
        "results/{experiment}/export/{run}/manifest.json",
    shell:
        "python scripts/run.py export_model @{params.call} --pretraining {input.pretraining}"
        " --summary {input.summary} --filled {input.filled} --output {output} 2>&1 | tee {log}"


rule list_exported_models:
    input:
        paths(RESULTS.exported),
    output:
        "results/{experiment}/export/README.md",
    shell:
        "python scripts/run.py list_exported_models @{params.call} --output {output}"
        " 2>&1 | tee {log}"
