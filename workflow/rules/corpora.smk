rule build_vocabulary:
    input:
        paths(DATA.vocabulary_inputs),
    output:
        "results/vocabularies/{vocabulary}/manifest.json",
    shell:
        "python scripts/run.py build_vocabulary @{params.call} --output {output}"
        " 2>&1 | tee {log}"


rule select_text:
    input:
        paths(DATA.selection_inputs),
    output:
        "results/selections/{selection}/manifest.json",
    shell:
        "python scripts/run.py select_text @{params.call} --workers {threads}"
        " --output {output} 2>&1 | tee {log}"


rule convert_corpus:
    input:
        # Several sources of a corpus may be one raw input; Snakemake has recorded it for each of them.
        sources=paths(DATA.corpus_sources, each_once=False),
        sentence_model=paths(DATA.sentence_model),
    output:
        "results/corpora/{corpus}/manifest.json",
    shell:
        "python scripts/run.py convert_corpus @{params.call}"
        " --workers {threads} --output {output} 2>&1 | tee {log}"


rule sample_corpus:
    input:
        paths(DATA.sampled_corpora),
    output:
        "results/samples/{corpus}/manifest.json",
    shell:
        "python scripts/run.py sample_corpus @{params.call} --output {output}"
        " 2>&1 | tee {log}"


rule group_sequences:
    input:
        selections=paths(DATA.grouped_selections),
        held_out=paths(DATA.held_out),
    output:
        "results/sequences/{corpus}/manifest.json",
    shell:
        "python scripts/run.py group_sequences @{params.call}"
        " --output {output} 2>&1 | tee {log}"


rule describe_corpus:
    input:
        corpus=paths(DATA.corpus_manifest),
        published="config/published/corpora/sizes.csv",
        tokens=paths(DATA.card_tokens),
    output:
        manifest="results/cards/{corpus}/manifest.json",
        card="results/cards/{corpus}/card.html",
    shell:
        "python scripts/run.py describe_corpus @{params.call} --corpus {input.corpus}"
        " --published {input.published} --output {output.manifest} 2>&1 | tee {log}"
