stage = LAYOUT.stage("score_minimal_pairs")


# Places of results are named by what they are made from: the model, and the settings and data of the measurement.
# results/<experiment>/minimal_pairs/<model>/<suite> and the like are links to them.
rule score_minimal_pairs:
    input:
        model="results/models/{model}/manifest.json",
        source=stage.given("source"),
    output:
        "results/minimal_pairs/{model}/{address}/manifest.json",
    log:
        stage.log,
    benchmark:
        stage.benchmark
    conda:
        stage.conda
    threads: stage.threads
    resources:
        **stage.resources,
    params:
        **stage.params,
    shell:
        "{params.claim}python scripts/run.py score_minimal_pairs @{params.call} --runtime {params.runtime:q}"
        " --model {input.model} --output {output} 2>&1 | tee {log}"


stage = LAYOUT.stage("score_baseline")


# A model that others pretrained belongs to no experiment, so its scores are shared by all.
rule score_baseline:
    input:
        model=lambda wildcards: LAYOUT.baseline_model(wildcards.baseline),
        source=lambda wildcards: LAYOUT.evaluation_source("suite", wildcards.suite),
    output:
        "results/baselines/{baseline}/{suite}/manifest.json",
    log:
        stage.log,
    benchmark:
        stage.benchmark
    conda:
        stage.conda
    threads: stage.threads
    resources:
        **stage.resources,
    params:
        **stage.params,
    shell:
        "{params.claim}python scripts/run.py score_minimal_pairs @{params.call} --runtime {params.runtime:q}"
        " --model {input.model} --source {input.source} --output {output} 2>&1 | tee {log}"


stage = LAYOUT.stage("measure_perplexity")


rule measure_perplexity:
    input:
        model="results/models/{model}/manifest.json",
        tokens=stage.given("tokens"),
    output:
        "results/perplexity/{model}/{address}/manifest.json",
    log:
        stage.log,
    benchmark:
        stage.benchmark
    conda:
        stage.conda
    threads: stage.threads
    resources:
        **stage.resources,
    params:
        **stage.params,
    shell:
        "{params.claim}python scripts/run.py measure_perplexity @{params.call} --runtime {params.runtime:q}"
        " --model {input.model} --output {output} 2>&1 | tee {log}"


stage = LAYOUT.stage("translate_tests")


rule translate_tests:
    input:
        model="results/models/{model}/manifest.json",
        corpora=stage.given("corpus"),
    output:
        "results/translation/{model}/{address}/manifest.json",
    log:
        stage.log,
    benchmark:
        stage.benchmark
    conda:
        stage.conda
    threads: stage.threads
    resources:
        **stage.resources,
    params:
        **stage.params,
    shell:
        "{params.claim}python scripts/run.py translate_tests @{params.call} --runtime {params.runtime:q}"
        " --model {input.model} --output {output} 2>&1 | tee {log}"


stage = LAYOUT.stage("finetune")


# One job runs all seeds of a task and model: many small jobs cost more in starting than in work.
rule finetune:
    input:
        model="results/models/{model}/manifest.json",
        sources=stage.given("source"),
        vocabulary=stage.given("vocabulary"),
    output:
        "results/finetuning/{model}/{address}/manifest.json",
    log:
        stage.log,
    benchmark:
        stage.benchmark
    conda:
        stage.conda
    threads: stage.threads
    resources:
        **stage.resources,
    params:
        **stage.params,
    shell:
        "{params.claim}python scripts/run.py finetune @{params.call} --runtime {params.runtime:q} --model {input.model}"
        " --checkpoints results/finetuning_runs --output {output} 2>&1 | tee {log}"


stage = LAYOUT.stage("finetune_tasks")


# For experiments whose processes would take longer to start than to work. The folders of the tasks are no declared
# outputs: Snakemake would delete those that are finished when one task of the job changes or fails.
rule finetune_tasks:
    input:
        model="results/models/{model}/manifest.json",
        sources=stage.given("source"),
        vocabularies=stage.given("vocabulary"),
    output:
        "results/finetuning_jobs/{model}/{address}/manifest.json",
    log:
        stage.log,
    benchmark:
        stage.benchmark
    conda:
        stage.conda
    threads: stage.threads
    resources:
        **stage.resources,
    params:
        **stage.params,
        results="results/finetuning/{model}",
    shell:
        "{params.claim}python scripts/run.py finetune_tasks @{params.call} --runtime {params.runtime:q} --model {input.model}"
        " --checkpoints results/finetuning_runs --results {params.results} --output {output} 2>&1 | tee {log}"


stage = LAYOUT.stage("show_result")


# So that results can be asked for by their readable names, which are links to where they are kept. A link is made when
# the workflow starts, so there is nothing left to do; `update` keeps Snakemake from deleting the file behind it.
rule show_result:
    input:
        lambda wildcards: LAYOUT.shown_manifest(workflow, **wildcards),
    output:
        update("results/{experiment}/{kind}/{place}/manifest.json"),
    log:
        stage.log,
    benchmark:
        stage.benchmark
    wildcard_constraints:
        kind=LAYOUT.kept_kinds(),
        place=r"[A-Za-z0-9][A-Za-z0-9_]*-s[0-9]+(/[A-Za-z0-9][A-Za-z0-9_]*)?",
    conda:
        stage.conda
    resources:
        **stage.resources,
    params:
        kept=lambda wildcards: LAYOUT.kept_manifest(**wildcards),
    shell:
        "printf '%s is %s\\n' {output:q} {params.kept:q} 2>&1 | tee {log}"
