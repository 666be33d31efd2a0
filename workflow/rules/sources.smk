rule generate_embedded_sources:
    output:
        "resources/embedded/manifest.json",
    shell:
        "python scripts/run.py generate_embedded_sources @{params.call} --output {output} 2>&1 | tee {log}"


# Before all else: a file that a suite or task cannot read ends the workflow before its first training.
rule register_source:
    input:
        paths(DATA.source_inputs),
    output:
        manifest="resources/sources/{source}.json",
        location="resources/sources/{source}.location.json",
    priority: 1
    params:
        # An edited, added or removed file is noticed when the workflow is planned.
        listing=recorded(RULES.source_listing),
        # These ask for resources, so Snakemake does not record them: no result depends on them.
        about=unrecorded(DATA.about_source),
        readings=unrecorded(DATA.readings),
    shell:
        "python scripts/run.py register_source @{params.call} --about {params.about:q} --readings {params.readings:q}"
        " --output {output.manifest} --fetched resources/fetched 2>&1 | tee {log}"
