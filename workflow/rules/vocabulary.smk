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
        inputs=lambda wildcards: flags(LAYOUT.vocabulary_inputs(wildcards.vocabulary)),
    shell:
        "python scripts/build_vocabulary.py --settings {params.settings:q} {params.inputs} --output {output}"
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
        inputs=lambda wildcards: flags(LAYOUT.selection_inputs(wildcards.selection)),
    shell:
        "python scripts/select_text.py --settings {params.settings:q} {params.inputs} --workers {threads}"
        " --output {output} 2>&1 | tee {log}"
