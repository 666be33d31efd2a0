localrules:
    write_cost,


# Reads settings only, so that the cost of an experiment is known before any of its data is there.
rule write_cost:
    output:
        csv="results/{experiment}/cost.csv",
        markdown="results/{experiment}/cost.md",
        checksums="results/{experiment}/cost.sha256",
    log:
        "logs/write_cost/{experiment}.log",
    benchmark:
        "results/benchmarks/write_cost/{experiment}.tsv"
    conda:
        "../../envs/pretraining.yaml"
    resources:
        **LAYOUT.resources("write_cost"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "write_cost", experiment=wildcards.experiment
        ),
        call=lambda wildcards: LAYOUT.call(
            "write_cost", experiment=wildcards.experiment
        ),
    shell:
        "python scripts/write_cost.py @{params.call} --output {output.csv}"
        " --markdown {output.markdown} 2>&1 | tee {log}"
