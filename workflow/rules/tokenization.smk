rule train_tokenizer:
    input:
        inputs("train_tokenizer"),
    output:
        "results/tokenizers/{tokenizer}/manifest.json",
    shell:
        "python scripts/run.py train_tokenizer {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule encode_corpus:
    input:
        inputs("encode_corpus"),
    output:
        "results/tokens/{corpus}/{tokenizer}/manifest.json",
    shell:
        "python scripts/run.py encode_corpus {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule select_tokenizer:
    input:
        inputs("select_tokenizer"),
    output:
        manifest="results/tokenizer_sweeps/{sweep}/manifest.json",
        csv="results/tokenizer_sweeps/{sweep}/selection.csv",
        markdown="results/tokenizer_sweeps/{sweep}/selection.md",
        tokenizer="results/tokenizer_sweeps/{sweep}/tokenizer.json",
        figure="results/tokenizer_sweeps/{sweep}/tokenizer_sweep.svg",
    shell:
        "python scripts/run.py select_tokenizer {params.call} {params.given:q}"
        " 2>&1 | tee {log}"
