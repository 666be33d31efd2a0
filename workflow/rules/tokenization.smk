stage = LAYOUT.stage("train_tokenizer")


rule train_tokenizer:
    input:
        corpora=lambda wildcards: LAYOUT.tokenizer_corpora(wildcards.tokenizer),
    output:
        "results/tokenizers/{tokenizer}/manifest.json",
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
        "python scripts/run.py train_tokenizer @{params.call} --corpus {input.corpora}"
        " --threads {threads} --output {output}"
        " 2>&1 | tee {log}"


stage = LAYOUT.stage("encode_corpus")


rule encode_corpus:
    input:
        corpus=lambda wildcards: LAYOUT.corpus_manifest(wildcards.corpus),
        tokenizer="results/tokenizers/{tokenizer}/manifest.json",
    output:
        "results/tokens/{corpus}/{tokenizer}/manifest.json",
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
        "python scripts/run.py encode_corpus @{params.call} --corpus {input.corpus}"
        " --tokenizer {input.tokenizer} --threads {threads} --output {output} 2>&1 | tee {log}"


stage = LAYOUT.stage("select_tokenizer")


rule select_tokenizer:
    input:
        corpus=lambda wildcards: LAYOUT.sweep_corpus(wildcards.sweep),
        morphemes=stage.given("morphemes"),
        references=stage.given("reference"),
        published=stage.given("published"),
    output:
        manifest="results/tokenizer_sweeps/{sweep}/manifest.json",
        csv="results/tokenizer_sweeps/{sweep}/selection.csv",
        markdown="results/tokenizer_sweeps/{sweep}/selection.md",
        tokenizer="results/tokenizer_sweeps/{sweep}/tokenizer.json",
        figure="results/tokenizer_sweeps/{sweep}/tokenizer_sweep.svg",
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
        "python scripts/run.py select_tokenizer @{params.call} --corpus {input.corpus}"
        " --threads {threads} --output {output.manifest} 2>&1 | tee {log}"
