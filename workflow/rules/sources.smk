rule generate_embedded_sources:
    output:
        "resources/embedded/manifest.json",
    shell:
        "python scripts/run.py generate_embedded_sources {params.call} {params.given:q}"
        " 2>&1 | tee {log}"


# Before all else: a file that a suite or task cannot read ends the workflow before its first training.
rule register_source:
    input:
        # What generates some of them.
        lambda wildcards: DATA.source_inputs(wildcards.source),
    output:
        manifest="resources/sources/{source}.json",
        location="resources/sources/{source}.location.json",
    priority: 1
    params:
        # An edited, added or removed file is noticed when the workflow is planned.
        listing=recorded(RULES.source_listing),
    shell:
        "python scripts/run.py register_source {params.call} {params.given:q}"
        " 2>&1 | tee {log}"
