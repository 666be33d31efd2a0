localrules:
    show_result,


# So that results can be asked for by their readable names, which are links to where they are kept. A link is made when
# the workflow starts, so there is nothing left to do; `update` keeps Snakemake from deleting the file behind it.
rule show_result:
    input:
        lambda wildcards: LAYOUT.kept_manifest(**wildcards),
    output:
        update("results/{experiment}/{kind}/{place}/manifest.json"),
    log:
        "logs/show_result/{experiment}/{kind}/{place}.log",
    benchmark:
        "results/benchmarks/show_result/{experiment}/{kind}/{place}.tsv"
    wildcard_constraints:
        kind=LAYOUT.kept_kinds(),
        place=r"[A-Za-z0-9][A-Za-z0-9_]*-s[0-9]+(/[A-Za-z0-9][A-Za-z0-9_]*)?",
    conda:
        "../../envs/sources.yaml"
    resources:
        **LAYOUT.resources("show_result"),
    params:
        kept=lambda wildcards: LAYOUT.kept_manifest(**wildcards),
    shell:
        "printf '%s is %s\\n' {output:q} {params.kept:q} 2>&1 | tee {log}"
