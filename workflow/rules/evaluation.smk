rule score_minimal_pairs:
    input:
        model="results/{experiment}/pretraining/{cell}/manifest.json",
        source=lambda wildcards: LAYOUT.evaluation_source("suite", wildcards.suite),
    output:
        "results/{experiment}/minimal_pairs/{cell}/{suite}/manifest.json",
    log:
        "logs/score_minimal_pairs/{experiment}/{cell}/{suite}.log",
    benchmark:
        "results/benchmarks/score_minimal_pairs/{experiment}/{cell}/{suite}.tsv"
    conda:
        "../../envs/evaluation.yaml"
    threads: LAYOUT.threads("evaluation")
    resources:
        **LAYOUT.resources("score_minimal_pairs"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "score_minimal_pairs", suite=wildcards.suite
        ),
        runtime=lambda wildcards, resources: LAYOUT.runtime("score_minimal_pairs"),
        claim=lambda wildcards, resources: LAYOUT.gpu_claim(resources),
    shell:
        "{params.claim}python scripts/score_minimal_pairs.py --settings {params.settings:q} --runtime {params.runtime:q}"
        " --model {input.model} --source {input.source} --output {output} 2>&1 | tee {log}"


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
        runtime=lambda wildcards, resources: LAYOUT.runtime("score_minimal_pairs"),
        claim=lambda wildcards, resources: LAYOUT.gpu_claim(resources),
    shell:
        "{params.claim}python scripts/score_minimal_pairs.py --settings {params.settings:q} --runtime {params.runtime:q}"
        " --model {input.model} --source {input.source} --output {output} 2>&1 | tee {log}"


rule measure_perplexity:
    input:
        model="results/{experiment}/pretraining/{cell}/manifest.json",
        tokens=lambda wildcards: LAYOUT.experiment_tokens(wildcards.experiment),
    output:
        "results/{experiment}/perplexity/{cell}/manifest.json",
    log:
        "logs/measure_perplexity/{experiment}/{cell}.log",
    benchmark:
        "results/benchmarks/measure_perplexity/{experiment}/{cell}.tsv"
    conda:
        "../../envs/evaluation.yaml"
    threads: LAYOUT.threads("evaluation")
    resources:
        **LAYOUT.resources("measure_perplexity"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "measure_perplexity", experiment=wildcards.experiment
        ),
        runtime=lambda wildcards, resources: LAYOUT.runtime("score_minimal_pairs"),
        claim=lambda wildcards, resources: LAYOUT.gpu_claim(resources),
    shell:
        "{params.claim}python scripts/measure_perplexity.py --settings {params.settings:q} --runtime {params.runtime:q}"
        " --model {input.model} --tokens {input.tokens} --output {output} 2>&1 | tee {log}"


# One job runs all seeds of a task and model: many small jobs cost more in starting than in work.
rule finetune:
    input:
        settings=lambda wildcards: ancient(
            LAYOUT.frozen_settings(
                "finetune", experiment=wildcards.experiment, task=wildcards.task
            )
        ),
        model="results/{experiment}/pretraining/{cell}/manifest.json",
        sources=lambda wildcards: sorted(
            set(LAYOUT.task_sources(wildcards.task).values())
        ),
        vocabulary=lambda wildcards: LAYOUT.task_vocabulary(wildcards.task),
    output:
        "results/{experiment}/finetuning/{cell}/{task}/manifest.json",
    log:
        "logs/finetune/{experiment}/{cell}/{task}.log",
    benchmark:
        "results/benchmarks/finetune/{experiment}/{cell}/{task}.tsv"
    conda:
        "../../envs/evaluation.yaml"
    threads: LAYOUT.threads("evaluation")
    resources:
        **LAYOUT.resources("finetune"),
    params:
        sources=lambda wildcards: arguments(
            "--source", LAYOUT.task_sources(wildcards.task)
        ),
        vocabulary=lambda wildcards, input: (
            f"--vocabulary {input.vocabulary}" if input.vocabulary else ""
        ),
        settings=lambda wildcards: LAYOUT.settings(
            "finetune", experiment=wildcards.experiment, task=wildcards.task
        ),
        runtime=lambda wildcards, resources: LAYOUT.runtime("finetune"),
        claim=lambda wildcards, resources: LAYOUT.gpu_claim(resources),
    shell:
        "{params.claim}python scripts/finetune.py --settings {input.settings} --runtime {params.runtime:q} --model {input.model}"
        " {params.sources} {params.vocabulary} --checkpoints results/checkpoints --output {output} 2>&1 | tee {log}"


# For experiments whose processes would take longer to start than to work. The folders of the tasks are no declared
# outputs: Snakemake would delete those that are finished when one task of the job changes or fails.
rule finetune_tasks:
    input:
        settings=lambda wildcards: ancient(
            LAYOUT.frozen_settings(
                "finetune_tasks",
                experiment=wildcards.experiment,
                batch=wildcards.batch,
            )
        ),
        model="results/{experiment}/pretraining/{cell}/manifest.json",
        sources=lambda wildcards: sorted(
            set(LAYOUT.batch_sources(wildcards.experiment, wildcards.batch).values())
        ),
        vocabularies=lambda wildcards: sorted(
            set(
                LAYOUT.batch_vocabularies(
                    wildcards.experiment, wildcards.batch
                ).values()
            )
        ),
    output:
        "results/{experiment}/finetuning_jobs/{cell}/{batch}/manifest.json",
    log:
        "logs/finetune_tasks/{experiment}/{cell}/{batch}.log",
    benchmark:
        "results/benchmarks/finetune_tasks/{experiment}/{cell}/{batch}.tsv"
    conda:
        "../../envs/evaluation.yaml"
    threads: LAYOUT.threads("evaluation")
    resources:
        **LAYOUT.resources("finetune_tasks"),
    params:
        sources=lambda wildcards: arguments(
            "--source", LAYOUT.batch_sources(wildcards.experiment, wildcards.batch)
        ),
        vocabularies=lambda wildcards: arguments(
            "--vocabulary",
            LAYOUT.batch_vocabularies(wildcards.experiment, wildcards.batch),
        ),
        settings=lambda wildcards: LAYOUT.settings(
            "finetune_tasks", experiment=wildcards.experiment, batch=wildcards.batch
        ),
        runtime=lambda wildcards, resources: LAYOUT.runtime("finetune"),
        claim=lambda wildcards, resources: LAYOUT.gpu_claim(resources),
        results="results/{experiment}/finetuning/{cell}",
    shell:
        "{params.claim}python scripts/finetune_tasks.py --settings {input.settings} --runtime {params.runtime:q} --model {input.model}"
        " {params.sources} {params.vocabularies} --checkpoints results/checkpoints --results {params.results}"
        " --output {output} 2>&1 | tee {log}"
