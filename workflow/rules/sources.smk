stage = LAYOUT.stage("generate_embedded_sources")


rule generate_embedded_sources:
    output:
        "resources/embedded/manifest.json",
    log:
        stage.log,
    benchmark:
        stage.benchmark
    conda:
        stage.conda
    resources:
        **stage.resources,
    params:
        **stage.params,
    shell:
        "python scripts/run.py generate_embedded_sources @{params.call} --output {output} 2>&1 | tee {log}"


stage = LAYOUT.stage("register_source")


# Before all else: a file that a suite or task cannot read ends the workflow before its first training.
rule register_source:
    input:
        lambda wildcards: LAYOUT.source_inputs(wildcards.source),
    output:
        manifest="resources/sources/{source}.json",
        location="resources/sources/{source}.location.json",
    log:
        stage.log,
    benchmark:
        stage.benchmark
    priority: 1
    conda:
        stage.conda
    resources:
        **stage.resources,
    params:
        **stage.params,
        # An edited, added or removed file is noticed when the workflow is planned.
        listing=lambda wildcards: LAYOUT.source_listing(wildcards.source),
        # These ask for resources, so Snakemake does not record them: no result depends on them.
        about=lambda wildcards, resources: LAYOUT.about_source(wildcards.source),
        readings=lambda wildcards, resources: LAYOUT.readings(wildcards.source),
    shell:
        "python scripts/run.py register_source @{params.call} --about {params.about:q} --readings {params.readings:q}"
        " --output {output.manifest} --fetched resources/fetched 2>&1 | tee {log}"
