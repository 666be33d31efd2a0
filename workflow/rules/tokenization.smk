rule train_tokenizer:
    input:
        corpora=paths(DATA.tokenizer_corpora),
    output:
        "results/tokenizers/{tokenizer}/manifest.json",
    shell:
        "python scripts/run.py train_tokenizer @{params.call} --corpus {input.corpora}"
        " --threads {threads} --output {output}"
        " 2>&1 | tee {log}"


rule encode_corpus:
    input:
        corpus=paths(DATA.corpus_manifest),
        tokenizer="results/tokenizers/{tokenizer}/manifest.json",
    output:
        "results/tokens/{corpus}/{tokenizer}/manifest.json",
    shell:
        "python scripts/run.py encode_corpus @{params.call} --corpus {input.corpus}"
        " --tokenizer {input.tokenizer} --threads {threads} --output {output} 2>&1 | tee {log}"


rule select_tokenizer:
    input:
        corpus=paths(DATA.sweep_corpus),
        morphemes=paths(DATA.sweep_morphemes),
        references=paths(DATA.sweep_references),
        published=paths(DATA.sweep_published),
    output:
        manifest="results/tokenizer_sweeps/{sweep}/manifest.json",
        csv="results/tokenizer_sweeps/{sweep}/selection.csv",
        markdown="results/tokenizer_sweeps/{sweep}/selection.md",
        tokenizer="results/tokenizer_sweeps/{sweep}/tokenizer.json",
        figure="results/tokenizer_sweeps/{sweep}/tokenizer_sweep.svg",
    shell:
        "python scripts/run.py select_tokenizer @{params.call} --corpus {input.corpus}"
        " --threads {threads} --output {output.manifest} 2>&1 | tee {log}"
