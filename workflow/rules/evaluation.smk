# Places of results are named by what they are made from: the model, and the settings and data of the measurement.
# results/<experiment>/minimal_pairs/<model>/<suite> and the like are links to them.
rule score_minimal_pairs:
    input:
        model="results/models/{model}/manifest.json",
        source=lambda wildcards: LAYOUT.given(wildcards.address, "source"),
    output:
        "results/minimal_pairs/{model}/{address}/manifest.json",
    log:
        "logs/score_minimal_pairs/{model}/{address}.log",
    benchmark:
        "results/benchmarks/score_minimal_pairs/{model}/{address}.tsv"
    conda:
        "../../envs/evaluation.yaml"
    threads: LAYOUT.threads("evaluation")
    resources:
        **LAYOUT.resources("score_minimal_pairs"),
    params:
        settings=lambda wildcards: LAYOUT.settings_of(wildcards.address),
        call=lambda wildcards: LAYOUT.call_of(wildcards.address),
        runtime=lambda wildcards, resources: LAYOUT.runtime("score_minimal_pairs"),
        claim=lambda wildcards, resources: LAYOUT.gpu_claim(resources),
    shell:
        "{params.claim}python scripts/score_minimal_pairs.py @{params.call} --runtime {params.runtime:q}"
        " --model {input.model} --output {output} 2>&1 | tee {log}"


# A model that others pretrained belongs to no experiment, so its scores are shared by all.
rule score_baseline:
    input:
        model=lambda wildcards: LAYOUT.baseline_model(wildcards.baseline),
        source=lambda wildcards: LAYOUT.evaluation_source("suite", wildcards.suite),
    output:
        "results/baselines/{baseline}/{suite}/manifest.json",
    log:
        "logs/score_baseline/{baseline}/{suite}.log",
    benchmark:
        "results/benchmarks/score_baseline/{baseline}/{suite}.tsv"
    conda:
        "../../envs/evaluation.yaml"
    threads: LAYOUT.threads("evaluation")
    resources:
        **LAYOUT.resources("score_baseline"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "score_minimal_pairs", suite=wildcards.suite, baseline=wildcards.baseline
        ),
        call=lambda wildcards: LAYOUT.call(
            "score_minimal_pairs", suite=wildcards.suite, baseline=wildcards.baseline
        ),
        runtime=lambda wildcards, resources: LAYOUT.runtime("score_minimal_pairs"),
        claim=lambda wildcards, resources: LAYOUT.gpu_claim(resources),
    shell:
        "{params.claim}python scripts/score_minimal_pairs.py @{params.call} --runtime {params.runtime:q}"
        " --model {input.model} --source {input.source} --output {output} 2>&1 | tee {log}"


rule measure_perplexity:
    input:
        model="results/models/{model}/manifest.json",
        tokens=lambda wildcards: LAYOUT.given(wildcards.address, "tokens"),
    output:
        "results/perplexity/{model}/{address}/manifest.json",
    log:
        "logs/measure_perplexity/{model}/{address}.log",
    benchmark:
        "results/benchmarks/measure_perplexity/{model}/{address}.tsv"
    conda:
        "../../envs/evaluation.yaml"
    threads: LAYOUT.threads("evaluation")
    resources:
        **LAYOUT.resources("measure_perplexity"),
    params:
        settings=lambda wildcards: LAYOUT.settings_of(wildcards.address),
        call=lambda wildcards: LAYOUT.call_of(wildcards.address),
        runtime=lambda wildcards, resources: LAYOUT.runtime("score_minimal_pairs"),
        claim=lambda wildcards, resources: LAYOUT.gpu_claim(resources),
    shell:
        "{params.claim}python scripts/measure_perplexity.py @{params.call} --runtime {params.runtime:q}"
        " --model {input.model} --output {output} 2>&1 | tee {log}"


# One job runs all seeds of a task and model: many small jobs cost more in starting than in work.
rule finetune:
    input:
        model="results/models/{model}/manifest.json",
        sources=lambda wildcards: LAYOUT.given(wildcards.address, "source"),
        vocabulary=lambda wildcards: LAYOUT.given(wildcards.address, "vocabulary"),
    output:
        "results/finetuning/{model}/{address}/manifest.json",
    log:
        "logs/finetune/{model}/{address}.log",
    benchmark:
        "results/benchmarks/finetune/{model}/{address}.tsv"
    conda:
        "../../envs/evaluation.yaml"
    threads: LAYOUT.threads("evaluation")
    resources:
        **LAYOUT.resources("finetune"),
    params:
        settings=lambda wildcards: LAYOUT.settings_of(wildcards.address),
        call=lambda wildcards: LAYOUT.call_of(wildcards.address),
        runtime=lambda wildcards, resources: LAYOUT.runtime("finetune"),
        claim=lambda wildcards, resources: LAYOUT.gpu_claim(resources),
    shell:
        "{params.claim}python scripts/finetune.py @{params.call} --runtime {params.runtime:q} --model {input.model}"
        " --checkpoints results/finetuning_runs --output {output} 2>&1 | tee {log}"


# For experiments whose processes would take longer to start than to work. The folders of the tasks are no declared
# outputs: Snakemake would delete those that are finished when one task of the job changes or fails.
rule finetune_tasks:
    input:
        model="results/models/{model}/manifest.json",
        sources=lambda wildcards: LAYOUT.given(wildcards.address, "source"),
        vocabularies=lambda wildcards: LAYOUT.given(wildcards.address, "vocabulary"),
    output:
        "results/finetuning_jobs/{model}/{address}/manifest.json",
    log:
        "logs/finetune_tasks/{model}/{address}.log",
    benchmark:
        "results/benchmarks/finetune_tasks/{model}/{address}.tsv"
    conda:
        "../../envs/evaluation.yaml"
    threads: LAYOUT.threads("evaluation")
    resources:
        **LAYOUT.resources("finetune_tasks"),
    params:
        settings=lambda wildcards: LAYOUT.settings_of(wildcards.address),
        call=lambda wildcards: LAYOUT.call_of(wildcards.address),
        runtime=lambda wildcards, resources: LAYOUT.runtime("finetune"),
        claim=lambda wildcards, resources: LAYOUT.gpu_claim(resources),
        results="results/finetuning/{model}",
    shell:
        "{params.claim}python scripts/finetune_tasks.py @{params.call} --runtime {params.runtime:q} --model {input.model}"
        " --checkpoints results/finetuning_runs --results {params.results} --output {output} 2>&1 | tee {log}"
