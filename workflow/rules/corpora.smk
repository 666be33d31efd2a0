rule convert_corpus:
    input:
        lambda wildcards: LAYOUT.corpus_sources(wildcards.corpus).values(),
    output:
        "results/corpora/{corpus}/manifest.json",
    log:
        "logs/convert_corpus/{corpus}.log",
    benchmark:
        "results/benchmarks/convert_corpus/{corpus}.tsv"
    conda:
        "../../envs/corpora.yaml"
    resources:
        mem_mb=4000,
        runtime=240,
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "convert_corpus", corpus=wildcards.corpus
        ),
        sources=lambda wildcards: arguments(
            "--source", LAYOUT.corpus_sources(wildcards.corpus)
        ),
    shell:
        "python scripts/convert_corpus.py --settings {params.settings:q} {params.sources} --output {output}"
        " 2>&1 | tee {log}"
