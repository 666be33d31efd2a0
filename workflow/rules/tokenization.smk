rule train_tokenizer:
    input:
        corpora=lambda wildcards: LAYOUT.tokenizer_corpora(wildcards.tokenizer),
    output:
        "results/tokenizers/{tokenizer}/manifest.json",
    log:
        "logs/train_tokenizer/{tokenizer}.log",
    benchmark:
        "results/benchmarks/train_tokenizer/{tokenizer}.tsv"
    conda:
        "../../envs/tokenization.yaml"
    threads: LAYOUT.threads("tokenization")
    resources:
        **LAYOUT.resources("train_tokenizer"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "train_tokenizer", tokenizer=wildcards.tokenizer
        ),
        call=lambda wildcards: LAYOUT.call(
            "train_tokenizer", tokenizer=wildcards.tokenizer
        ),
    shell:
        "python scripts/train_tokenizer.py @{params.call} --corpus {input.corpora}"
        " --threads {threads} --output {output}"
        " 2>&1 | tee {log}"


rule encode_corpus:
    input:
        corpus=lambda wildcards: LAYOUT.corpus_manifest(wildcards.corpus),
        tokenizer="results/tokenizers/{tokenizer}/manifest.json",
    output:
        "results/tokens/{corpus}/{tokenizer}/manifest.json",
    log:
        "logs/encode_corpus/{corpus}/{tokenizer}.log",
    benchmark:
        "results/benchmarks/encode_corpus/{corpus}/{tokenizer}.tsv"
    conda:
        "../../envs/tokenization.yaml"
    threads: LAYOUT.threads("tokenization")
    resources:
        **LAYOUT.resources("encode_corpus"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "encode_corpus", corpus=wildcards.corpus, tokenizer=wildcards.tokenizer
        ),
        call=lambda wildcards: LAYOUT.call(
            "encode_corpus", corpus=wildcards.corpus, tokenizer=wildcards.tokenizer
        ),
    shell:
        "python scripts/encode_corpus.py @{params.call} --corpus {input.corpus}"
        " --tokenizer {input.tokenizer} --threads {threads} --output {output} 2>&1 | tee {log}"
