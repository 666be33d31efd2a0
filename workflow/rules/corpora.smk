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
        sources=lambda wildcards: arguments(
            "--source", LAYOUT.corpus_sources(wildcards.corpus)
        ),
        sentence_model=lambda wildcards, input: (
            f"--sentence-model {input.sentence_model}" if input.sentence_model else ""
        ),
    shell:
        "python scripts/convert_corpus.py --settings {params.settings:q} {params.sources} {params.sentence_model}"
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
        corpora=lambda wildcards: flags(LAYOUT.sampled_corpora(wildcards.corpus)),
    shell:
        "python scripts/sample_corpus.py --settings {params.settings:q} {params.corpora} --output {output}"
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
        selections=lambda wildcards: arguments(
            "--selection", LAYOUT.grouped_selections(wildcards.corpus)
        ),
        held_out=lambda wildcards, input: (
            f"--held-out {input.held_out}" if input.held_out else ""
        ),
    shell:
        "python scripts/group_sequences.py --settings {params.settings:q} {params.selections} {params.held_out}"
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
        tokens=lambda wildcards, input: (
            f"--tokens {input.tokens}" if input.tokens else ""
        ),
    shell:
        "python scripts/describe_corpus.py --settings {params.settings:q} --corpus {input.corpus}"
        " --published {input.published} {params.tokens} --output {output.manifest} 2>&1 | tee {log}"
