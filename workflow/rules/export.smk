localrules:
    export_model,
    list_exported_models,


rule export_model:
    input:
        pretraining=lambda wildcards: LAYOUT.kept_manifest(
            wildcards.experiment, "pretraining", wildcards.cell
        ),
        summary="results/{experiment}/summary.csv",
        filled="results/{experiment}/filled_sentences/{cell}/manifest.json",
    output:
        "results/{experiment}/export/{cell}/manifest.json",
    log:
        "logs/export_model/{experiment}/{cell}.log",
    benchmark:
        "results/benchmarks/export_model/{experiment}/{cell}.tsv"
    conda:
        "../../envs/evaluation.yaml"
    resources:
        **LAYOUT.resources("export_model"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "export_model", experiment=wildcards.experiment, cell=wildcards.cell
        ),
        call=lambda wildcards: LAYOUT.call(
            "export_model", experiment=wildcards.experiment, cell=wildcards.cell
        ),
    shell:
        "python scripts/export_model.py @{params.call} --pretraining {input.pretraining}"
        " --summary {input.summary} --filled {input.filled} --output {output} 2>&1 | tee {log}"


rule list_exported_models:
    input:
        lambda wildcards: LAYOUT.exported(wildcards.experiment).values(),
    output:
        "results/{experiment}/export/README.md",
    log:
        "logs/list_exported_models/{experiment}.log",
    benchmark:
        "results/benchmarks/list_exported_models/{experiment}.tsv"
    conda:
        "../../envs/evaluation.yaml"
    resources:
        **LAYOUT.resources("list_exported_models"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "list_exported_models", experiment=wildcards.experiment
        ),
        call=lambda wildcards: LAYOUT.call(
            "list_exported_models",
            {"model": LAYOUT.exported(wildcards.experiment)},
            experiment=wildcards.experiment,
        ),
    shell:
        "python scripts/list_exported_models.py @{params.call} --output {output}"
        " 2>&1 | tee {log}"
