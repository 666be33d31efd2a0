stage = LAYOUT.stage("build_vocabulary")


rule build_vocabulary:
    input:
        stage.given(),
    output:
        "results/vocabularies/{vocabulary}/manifest.json",
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
        "python scripts/run.py build_vocabulary @{params.call} --output {output}"
        " 2>&1 | tee {log}"


stage = LAYOUT.stage("select_text")


rule select_text:
    input:
        stage.given(),
    output:
        "results/selections/{selection}/manifest.json",
    log:
        stage.log,
    benchmark:
        stage.benchmark
    conda:
        stage.conda
    threads: stage.threads
    resources:
        **stage.resources,
    params:
        **stage.params,
    shell:
        "python scripts/run.py select_text @{params.call} --workers {threads}"
        " --output {output} 2>&1 | tee {log}"


stage = LAYOUT.stage("convert_corpus")


rule convert_corpus:
    input:
        sources=lambda wildcards: LAYOUT.corpus_sources(wildcards.corpus).values(),
        sentence_model=stage.given("sentence_model"),
    output:
        "results/corpora/{corpus}/manifest.json",
    log:
        stage.log,
    benchmark:
        stage.benchmark
    conda:
        stage.conda
    threads: stage.threads
    resources:
        **stage.resources,
    params:
        **stage.params,
    shell:
        "python scripts/run.py convert_corpus @{params.call}"
        " --workers {threads} --output {output} 2>&1 | tee {log}"


stage = LAYOUT.stage("sample_corpus")


rule sample_corpus:
    input:
        stage.given(),
    output:
        "results/samples/{corpus}/manifest.json",
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
        "python scripts/run.py sample_corpus @{params.call} --output {output}"
        " 2>&1 | tee {log}"


stage = LAYOUT.stage("group_sequences")


rule group_sequences:
    input:
        selections=stage.given("selection"),
        held_out=stage.given("held_out"),
    output:
        "results/sequences/{corpus}/manifest.json",
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
        "python scripts/run.py group_sequences @{params.call}"
        " --output {output} 2>&1 | tee {log}"


stage = LAYOUT.stage("describe_corpus")


rule describe_corpus:
    input:
        corpus=lambda wildcards: LAYOUT.corpus_manifest(wildcards.corpus),
        published="config/published/corpora/sizes.csv",
        tokens=stage.given("tokens"),
    output:
        manifest="results/cards/{corpus}/manifest.json",
        card="results/cards/{corpus}/card.html",
        growth="results/cards/{corpus}/vocabulary_growth.svg",
        lengths="results/cards/{corpus}/length_distribution.svg",
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
        "python scripts/run.py describe_corpus @{params.call} --corpus {input.corpus}"
        " --published {input.published} --output {output.manifest} 2>&1 | tee {log}"
