rule convert_corpus:
    input:
        sources=lambda wildcards: LAYOUT.corpus_sources(wildcards.corpus).values(),
        sentence_model=lambda wildcards: LAYOUT.sentence_model(wildcards.corpus),
    output:
        "results/corpora/{corpus}/manifest.json",
    log:
        "logs/convert_corpus/{corpus}.log",
    benchmark:
        "results/benchmarks/convert_corpus/{corpus}.tsv"
    conda:
        "../../envs/corpora.yaml"
    threads: LAYOUT.threads("corpus")
    resources:
        **LAYOUT.resources("convert_corpus"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "convert_corpus", corpus=wildcards.corpus
        ),
        call=lambda wildcards: LAYOUT.call(
            "convert_corpus",
            {
                "source": LAYOUT.corpus_sources(wildcards.corpus),
                "sentence_model": LAYOUT.sentence_model(wildcards.corpus),
            },
            corpus=wildcards.corpus,
        ),
    shell:
        "python scripts/convert_corpus.py @{params.call}"
        " --workers {threads} --output {output} 2>&1 | tee {log}"


rule sample_corpus:
    input:
        lambda wildcards: LAYOUT.sampled_corpora(wildcards.corpus).values(),
    output:
        "results/samples/{corpus}/manifest.json",
    log:
        "logs/sample_corpus/{corpus}.log",
    benchmark:
        "results/benchmarks/sample_corpus/{corpus}.tsv"
    conda:
        "../../envs/corpora.yaml"
    resources:
        **LAYOUT.resources("sample_corpus"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "sample_corpus", corpus=wildcards.corpus
        ),
        call=lambda wildcards: LAYOUT.call(
            "sample_corpus",
            LAYOUT.sampled_corpora(wildcards.corpus),
            corpus=wildcards.corpus,
        ),
    shell:
        "python scripts/sample_corpus.py @{params.call} --output {output}"
        " 2>&1 | tee {log}"


rule group_sequences:
    input:
        selections=lambda wildcards: LAYOUT.grouped_selections(
            wildcards.corpus
        ).values(),
        held_out=lambda wildcards: LAYOUT.held_out(wildcards.corpus),
    output:
        "results/sequences/{corpus}/manifest.json",
    log:
        "logs/group_sequences/{corpus}.log",
    benchmark:
        "results/benchmarks/group_sequences/{corpus}.tsv"
    conda:
        "../../envs/corpora.yaml"
    resources:
        **LAYOUT.resources("group_sequences"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "group_sequences", corpus=wildcards.corpus
        ),
        call=lambda wildcards: LAYOUT.call(
            "group_sequences",
            {
                "selection": LAYOUT.grouped_selections(wildcards.corpus),
                "held_out": LAYOUT.held_out(wildcards.corpus),
            },
            corpus=wildcards.corpus,
        ),
    shell:
        "python scripts/group_sequences.py @{params.call}"
        " --output {output} 2>&1 | tee {log}"


rule describe_corpus:
    input:
        corpus=lambda wildcards: LAYOUT.corpus_manifest(wildcards.corpus),
        published="config/published/corpora/sizes.csv",
        tokens=lambda wildcards: LAYOUT.card_tokens(wildcards.corpus),
    output:
        manifest="results/cards/{corpus}/manifest.json",
        card=report(
            "results/cards/{corpus}/card.html",
            caption="../report/corpus_card.rst",
            category="Corpora",
            labels={"corpus": "{corpus}", "item": "card"},
        ),
        growth=report(
            "results/cards/{corpus}/vocabulary_growth.svg",
            caption="../report/corpus_card.rst",
            category="Corpora",
            labels={"corpus": "{corpus}", "item": "vocabulary growth"},
        ),
        lengths=report(
            "results/cards/{corpus}/length_distribution.svg",
            caption="../report/corpus_card.rst",
            category="Corpora",
            labels={"corpus": "{corpus}", "item": "lengths"},
        ),
    log:
        "logs/describe_corpus/{corpus}.log",
    benchmark:
        "results/benchmarks/describe_corpus/{corpus}.tsv"
    conda:
        "../../envs/analysis.yaml"
    resources:
        **LAYOUT.resources("describe_corpus"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "describe_corpus", corpus=wildcards.corpus
        ),
        call=lambda wildcards: LAYOUT.call(
            "describe_corpus",
            {"tokens": LAYOUT.card_tokens(wildcards.corpus)},
            corpus=wildcards.corpus,
        ),
    shell:
        "python scripts/describe_corpus.py @{params.call} --corpus {input.corpus}"
        " --published {input.published} --output {output.manifest} 2>&1 | tee {log}"
