localrules:
    fill_sentences,


rule fill_sentences:
    input:
        pretraining=lambda wildcards: LAYOUT.kept_manifest(
            wildcards.experiment, "pretraining", wildcards.cell
        ),
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
        call=lambda wildcards: LAYOUT.call(
            "fill_sentences", experiment=wildcards.experiment, cell=wildcards.cell
        ),
    shell:
        "python scripts/fill_sentences.py @{params.call} --pretraining {input.pretraining}"
        " --corpus {input.corpus} --output {output} 2>&1 | tee {log}"
