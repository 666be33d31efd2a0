rule build_vocabulary:
    input:
        lambda wildcards: LAYOUT.vocabulary_inputs(wildcards.vocabulary).values(),
    output:
        "results/vocabularies/{vocabulary}/manifest.json",
    log:
        "logs/build_vocabulary/{vocabulary}.log",
    benchmark:
        "results/benchmarks/build_vocabulary/{vocabulary}.tsv"
    conda:
        "../../envs/corpora.yaml"
    resources:
        **LAYOUT.resources("build_vocabulary"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "build_vocabulary", vocabulary=wildcards.vocabulary
        ),
        call=lambda wildcards: LAYOUT.call(
            "build_vocabulary",
            LAYOUT.vocabulary_inputs(wildcards.vocabulary),
            vocabulary=wildcards.vocabulary,
        ),
    shell:
        "python scripts/build_vocabulary.py @{params.call} --output {output}"
        " 2>&1 | tee {log}"


rule select_text:
    input:
        lambda wildcards: LAYOUT.selection_inputs(wildcards.selection).values(),
    output:
        "results/selections/{selection}/manifest.json",
    log:
        "logs/select_text/{selection}.log",
    benchmark:
        "results/benchmarks/select_text/{selection}.tsv"
    conda:
        "../../envs/corpora.yaml"
    threads: LAYOUT.threads("corpus")
    resources:
        **LAYOUT.resources("select_text"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "select_text", selection=wildcards.selection
        ),
        call=lambda wildcards: LAYOUT.call(
            "select_text",
            LAYOUT.selection_inputs(wildcards.selection),
            selection=wildcards.selection,
        ),
    shell:
        "python scripts/select_text.py @{params.call} --workers {threads}"
        " --output {output} 2>&1 | tee {log}"
