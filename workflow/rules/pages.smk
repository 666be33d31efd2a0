rule write_page:
    input:
        inputs("write_page"),
    output:
        "results/{experiment}/index.html",
    shell:
        "python scripts/run.py write_page {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule write_provenance:
    input:
        inputs("write_provenance"),
    output:
        page="results/{experiment}/provenance.html",
        places="results/{experiment}/provenance_places.json",
        checksums="results/{experiment}/provenance.sha256",
        places_checksums="results/{experiment}/provenance_places.sha256",
    shell:
        "python scripts/run.py write_provenance {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule fill_sentences:
    input:
        inputs("fill_sentences"),
    output:
        "results/filled_sentences/{model}/{address}/manifest.json",
    shell:
        "python scripts/run.py fill_sentences {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule export_model:
    input:
        inputs("export_model"),
    output:
        "results/{experiment}/export/{run}/manifest.json",
    shell:
        "python scripts/run.py export_model {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule list_exported_models:
    input:
        inputs("list_exported_models"),
    output:
        "results/{experiment}/export/README.md",
    shell:
        "python scripts/run.py list_exported_models {params.call} {params.given:q}"
        " 2>&1 | tee {log}"
