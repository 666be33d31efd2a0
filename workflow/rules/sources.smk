localrules:
    register_source,


rule generate_embedded_sources:
    output:
        "resources/embedded/manifest.json",
    log:
        "logs/generate_embedded_sources.log",
    benchmark:
        "results/benchmarks/generate_embedded_sources.tsv"
    conda:
        "../../envs/sources.yaml"
    resources:
        **LAYOUT.resources("generate_embedded_sources"),
    params:
        settings=lambda wildcards: LAYOUT.settings("generate_embedded_sources"),
        call=lambda wildcards: LAYOUT.call("generate_embedded_sources"),
    shell:
        "python scripts/generate_embedded_sources.py @{params.call} --output {output} 2>&1 | tee {log}"


rule register_source:
    input:
        lambda wildcards: LAYOUT.source_inputs(wildcards.source),
    output:
        manifest="resources/sources/{source}.json",
        location="resources/sources/{source}.location.json",
    log:
        "logs/register_source/{source}.log",
    benchmark:
        "results/benchmarks/register_source/{source}.tsv"
    conda:
        "../../envs/sources.yaml"
    resources:
        **LAYOUT.resources("register_source"),
    params:
        settings=lambda wildcards: LAYOUT.settings(
            "register_source", source=wildcards.source
        ),
        call=lambda wildcards: LAYOUT.call("register_source", source=wildcards.source),
        # An edited, added or removed file is noticed when the workflow is planned.
        listing=lambda wildcards: LAYOUT.source_listing(wildcards.source),
        # Asks for resources, so Snakemake does not record it: no result depends on these words.
        about=lambda wildcards, resources: LAYOUT.about_source(wildcards.source),
    shell:
        "python scripts/register_source.py @{params.call} --about {params.about:q}"
        " --output {output.manifest} --fetched resources/fetched 2>&1 | tee {log}"
