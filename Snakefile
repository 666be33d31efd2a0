# Hatchery: from raw corpora to result tables. Targets name an experiment (config/experiments/) or a study
# (config/studies/), which summarises several experiments:
#
#   snakemake results/<experiment>/summary.csv      table of the results
#   snakemake results/<experiment>/index.html       page with the table and the figures
#   snakemake results/<experiment>/cost.md          estimated cost, which needs no data
#   snakemake results/<experiment>/export/README.md models as folders for the transformers library
#   snakemake                                       pages of all experiments under `experiments` in config.yaml
import gc
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.27")
# Run the garbage collector rarely, because planning creates many objects but few reference cycles. With the default
# thresholds, garbage collection would take a sixth of a dry run.
gc.freeze()
gc.set_threshold(100_000, 20, 20)
# The folder of this Snakefile, even if another workflow imports this file as a module.
CHECKOUT = Path(workflow.current_basedir.get_path_or_uri(secret_free=False))
if not (CHECKOUT / "scripts/hatchery").is_dir():
    raise SystemExit(
        f"error: {CHECKOUT}: there is no library (scripts/hatchery) next to the Snakefile; clone Hatchery, and"
        " use the path of the Snakefile in the clone"
    )
sys.path.insert(0, str(CHECKOUT / "scripts"))

from hatchery.errors import full_disk, links_lost, writing_refused

if refused := (
    writing_refused(Path()) or full_disk(Path().absolute()) or links_lost(CHECKOUT)
):
    raise SystemExit(f"error: {refused}")

from hatchery.workflow.registry import SHARED, STAGES, WILDCARDS
from hatchery.workflow.rules import with_plain_errors
from hatchery.workflow.open_workflow import (
    begin_in_module,
    check_request,
    frozen_configuration,
    is_module,
    open_workflow,
    require_raw_data,
    show_results,
)
from hatchery.workflow.snakemake_call import begin_jobs, is_real_run, prepare_call

prepare_call(workflow, lambda wildcards: RULES.jobs.names_of_wildcards(wildcards))
# Cluster jobs start later than the workflow, but must read the configuration from the time of planning.
RULES = open_workflow(
    with_plain_errors(frozen_configuration)(
        "config", workflow.is_main_process, is_real_run(workflow)
    ),
    workflow.config_settings,
    workflow.is_main_process,
    is_real_run(workflow),
)


wildcard_constraints:
    **WILDCARDS,


RULES.count_gpus(workflow)

# Inputs, outputs, resources and parameters of each rule are declared on the function of its stage in
# scripts/hatchery/<package>/stages/<rule>.py. `make show RULE=...` prints a rule and an example of its jobs.
for stage in STAGES.values():

    rule:
        name:
            stage.name
        input:
            RULES.inputs(stage),
        output:
            **RULES.outputs(stage),
        log:
            stage.path_pattern("logs", ".log"),
        benchmark:
            stage.path_pattern("results/benchmarks", ".tsv")
        wildcard_constraints:
            **stage.wildcard_patterns(RULES.project),
        priority: stage.priority
        localrule: stage.runs_on == "local"
        conda:
            f"envs/{stage.environment}.yaml"
        threads: RULES.resources.threads(stage.threads)
        resources:
            **RULES.resources_of(stage),
        params:
            **RULES.params(stage),
        # Slurm sends its signals to every process of a job. `tee` ignores these signals, so that the log contains the
        # messages that a training writes while it saves a checkpoint.
        shell:
            "{params.run} {params.call} {params.given:q} 2>&1"
            " | (trap '' TERM USR1 INT; exec tee {log})"


# With this rule, users request results by readable paths, which are links to the folders that contain the results. The
# links are created when the workflow starts, so the command of the rule only prints a line. `update` prevents Snakemake
# from deleting the file to which a link leads.
rule show_result:
    input:
        RULES.shown_manifest(workflow),
    output:
        update("results/{experiment}/{kind}/{place}/manifest.json"),
    log:
        "logs/show_result/{experiment}/{kind}/{place}.log",
    wildcard_constraints:
        kind="|".join(SHARED),
        place=r"[A-Za-z0-9][A-Za-z0-9_]*(-s[0-9]+)?(-step[0-9]+|-chck_[0-9]+[KM]?)?(/[A-Za-z0-9][A-Za-z0-9_]*)?",
    localrule: True
    conda:
        "envs/sources.yaml"
    resources:
        mem_mb=100,
        runtime=1,
    params:
        kept=with_plain_errors(RULES.kept),
    shell:
        "printf '%s is %s\\n' {output:q} {params.kept:q} 2>&1 | tee {log}"


rule all:
    default_target: True
    input:
        RULES.default_pages(),
    localrule: True


# Mistakes in the requested targets are reported before jobs are planned. Missing data are reported before the first job
# starts.
check_request(RULES, workflow)


if is_module(workflow):
    begin_in_module(RULES, workflow)


# Snakemake does not run `onstart` in a dry run, so a dry run does not create files.
onstart:
    require_raw_data(RULES.project, workflow.dag)
    asked = workflow.dag_settings
    RULES.start(bool(asked.forceall or asked.forcetargets or asked.forcerun))
    begin_jobs(workflow.dag)


onsuccess:
    show_results(RULES.project)
