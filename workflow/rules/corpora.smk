rule build_vocabulary:
    input:
        inputs("build_vocabulary"),
    output:
        "results/vocabularies/{vocabulary}/manifest.json",
    shell:
        "python scripts/run.py build_vocabulary {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule select_text:
    input:
        inputs("select_text"),
    output:
        "results/selections/{selection}/manifest.json",
    shell:
        "python scripts/run.py select_text {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule convert_corpus:
    input:
        inputs("convert_corpus"),
    output:
        "results/corpora/{corpus}/manifest.json",
    shell:
        "python scripts/run.py convert_corpus {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule sample_corpus:
    input:
        inputs("sample_corpus"),
    output:
        "results/samples/{corpus}/manifest.json",
    shell:
        "python scripts/run.py sample_corpus {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule group_sequences:
    input:
        inputs("group_sequences"),
    output:
        "results/sequences/{corpus}/manifest.json",
    shell:
        "python scripts/run.py group_sequences {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule describe_corpus:
    input:
        inputs("describe_corpus"),
    output:
        manifest="results/cards/{corpus}/manifest.json",
        card="results/cards/{corpus}/card.html",
        statistics="results/cards/{corpus}/statistics.csv",
    shell:
        "python scripts/run.py describe_corpus {params.call} {params.given:q}"
        " 2>&1 | tee {log}"
