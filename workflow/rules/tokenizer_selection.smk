rule select_tokenizer:
    input:
        corpus=lambda wildcards: LAYOUT.sweep_corpus(wildcards.sweep),
        morphemes=lambda wildcards: LAYOUT.sweep_morphemes(wildcards.sweep),
        references=lambda wildcards: LAYOUT.sweep_references(wildcards.sweep).values(),
        published=lambda wildcards: LAYOUT.sweep_published(wildcards.sweep),
    output:
        manifest="results/tokenizer_sweeps/{sweep}/manifest.json",
        csv="results/tokenizer_sweeps/{sweep}/selection.csv",
        markdown="results/tokenizer_sweeps/{sweep}/selection.md",
        tokenizer="results/tokenizer_sweeps/{sweep}/tokenizer.json",
        figure=report(
            "results/tokenizer_sweeps/{sweep}/tokenizer_sweep.svg",
            caption="../report/tokenizer_sweep.rst",
            category="Tokenizers",
            labels={"sweep": "{sweep}", "figure": "word-split ratio and ESMS"},
        ),
    log:
        "logs/select_tokenizer/{sweep}.log",
    benchmark:
        "results/benchmarks/select_tokenizer/{sweep}.tsv"
    conda:
        "../../envs/tokenization.yaml"
    threads: LAYOUT.threads("corpus")
    resources:
        **LAYOUT.resources("select_tokenizer"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "select_tokenizer", sweep=wildcards.sweep
        ),
        call=lambda wildcards: LAYOUT.call(
            "select_tokenizer",
            {
                "morphemes": LAYOUT.sweep_morphemes(wildcards.sweep),
                "reference": LAYOUT.sweep_references(wildcards.sweep),
                "published": LAYOUT.sweep_published(wildcards.sweep),
            },
            sweep=wildcards.sweep,
        ),
    shell:
        "python scripts/select_tokenizer.py @{params.call} --corpus {input.corpus}"
        " --threads {threads} --output {output.manifest} 2>&1 | tee {log}"
