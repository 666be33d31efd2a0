localrules:
    freeze_settings,


# A job waiting in a queue reads files when it starts, not when it was submitted: expensive jobs therefore read their
# settings from a file whose name is the digest of its content.
rule freeze_settings:
    output:
        "results/settings/{digest}.json",
    log:
        "logs/freeze_settings/{digest}.log",
    benchmark:
        "results/benchmarks/freeze_settings/{digest}.tsv"
    wildcard_constraints:
        digest=r"[0-9a-f]{16}",
    conda:
        "../../envs/sources.yaml"
    resources:
        **LAYOUT.resources("freeze_settings"),
    params:
        text=lambda wildcards: LAYOUT.frozen_text(wildcards.digest),
    shell:
        "printf '%s' {params.text:q} > {output} 2> {log}"
