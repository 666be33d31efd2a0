localrules:
    fill_sentences,


rule fill_sentences:
    input:
        pretraining="results/{experiment}/pretraining/{cell}/manifest.json",
        corpus=lambda wildcards: LAYOUT.experiment_corpus(wildcards.experiment),
    output:
        "results/{experiment}/filled_sentences/{cell}/manifest.json",
    log:
        "logs/fill_sentences/{experiment}/{cell}.log",
    benchmark:
        "results/benchmarks/fill_sentences/{experiment}/{cell}.tsv"
    conda:
        "../../envs/evaluation.yaml"
    resources:
        **LAYOUT.resources("fill_sentences"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "fill_sentences", experiment=wildcards.experiment, cell=wildcards.cell
        ),
    shell:
        "python scripts/fill_sentences.py --settings {params.settings:q} --pretraining {input.pretraining}"
        " --corpus {input.corpus} --output {output} > {log} 2>&1"
