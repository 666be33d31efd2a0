# A model that others pretrained: from here on it is evaluated by the rules that evaluate ours.
rule import_model:
    input:
        inputs("import_model"),
    output:
        "results/models/{model}/manifest.json",
    wildcard_constraints:
        model=r"imported-[A-Za-z0-9][A-Za-z0-9_]*-[0-9a-f]{16}",
    shell:
        "python scripts/run.py import_model {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


# Places of results are named by what they are made from: the model, and the settings and data of the measurement.
# results/<experiment>/minimal_pairs/<model>/<suite> and the like are links to them.
rule score_minimal_pairs:
    input:
        inputs("score_minimal_pairs"),
    output:
        "results/minimal_pairs/{model}/{address}/manifest.json",
    shell:
        "{params.claim}python scripts/run.py score_minimal_pairs {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule measure_surprisal:
    input:
        inputs("measure_surprisal"),
    output:
        "results/surprisal/{model}/{address}/manifest.json",
    shell:
        "{params.claim}python scripts/run.py measure_surprisal {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule measure_reading:
    input:
        inputs("measure_reading"),
    output:
        "results/reading/{model}/{address}/manifest.json",
    shell:
        "{params.claim}python scripts/run.py measure_reading {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


# Of all checkpoints of a training at once: one number follows from their curves.
rule measure_acquisition:
    input:
        inputs("measure_acquisition"),
    output:
        "results/acquisition/{model}/{address}/manifest.json",
    shell:
        "{params.claim}python scripts/run.py measure_acquisition {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule measure_perplexity:
    input:
        inputs("measure_perplexity"),
    output:
        "results/perplexity/{model}/{address}/manifest.json",
    shell:
        "{params.claim}python scripts/run.py measure_perplexity {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


rule translate_tests:
    input:
        inputs("translate_tests"),
    output:
        "results/translation/{model}/{address}/manifest.json",
    shell:
        "{params.claim}python scripts/run.py translate_tests {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


# One job runs all seeds of a task and model: many small jobs cost more in starting than in work.
rule finetune:
    input:
        inputs("finetune"),
    output:
        "results/finetuning/{model}/{address}/manifest.json",
    shell:
        "{params.claim}python scripts/run.py finetune {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


# For experiments whose processes would take longer to start than to work. The folders of the tasks are no declared
# outputs: Snakemake would delete those that are finished when one task of the job changes or fails.
rule finetune_tasks:
    input:
        inputs("finetune_tasks"),
    output:
        "results/finetuning_jobs/{model}/{address}/manifest.json",
    shell:
        "{params.claim}python scripts/run.py finetune_tasks {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


# So that results can be asked for by their readable names, which are links to where they are kept. A link is made when
# the workflow starts, so there is nothing left to do; `update` keeps Snakemake from deleting the file behind it.
rule show_result:
    input:
        RULES.shown_manifest(workflow),
    output:
        update("results/{experiment}/{kind}/{place}/manifest.json"),
    log:
        "logs/show_result/{experiment}/{kind}/{place}.log",
    wildcard_constraints:
        kind="|".join(SHARED),
        place=r"[A-Za-z0-9][A-Za-z0-9_]*(-s[0-9]+)?(-step[0-9]+)?(/[A-Za-z0-9][A-Za-z0-9_]*)?",
    localrule: True
    conda:
        "../../envs/sources.yaml"
    resources:
        mem_mb=100,
        runtime=1,
    params:
        kept=recorded(RULES.kept),
    shell:
        "printf '%s is %s\\n' {output:q} {params.kept:q} 2>&1 | tee {log}"
