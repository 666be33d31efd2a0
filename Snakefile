# Hatchery: from raw corpora to result tables. Each experiment in config/experiments/ is a target, and so is each study
# in config/studies/, which reads several experiments together:
#
#   snakemake results/<experiment>/summary.csv      the table
#   snakemake results/<experiment>/index.html       the table, the figures and a page that holds them
#   snakemake results/<experiment>/cost.md          what it will cost, before any data is there
#   snakemake results/<experiment>/export/README.md the models as folders for the transformers library
#   snakemake                                       the page of every experiment under `experiments` in config.yaml
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.27")
sys.path.insert(0, str(Path(workflow.basedir) / "scripts"))

from hatchery.errors import full_disk, links_lost, writing_refused

if refused := (
    writing_refused(Path())
    or full_disk(Path().absolute())
    or links_lost(Path(workflow.basedir))
):
    raise SystemExit(f"error: {refused}")

from hatchery.training.milestones import MILESTONE_NAME
from hatchery.workflow.registry import SHARED
from hatchery.workflow.rules import with_plain_errors
from hatchery.workflow.open_workflow import (
    check_request,
    frozen_configuration,
    open_workflow,
    require_raw_data,
    show_results,
)
from hatchery.workflow.snakemake_call import begin_jobs, is_real_run, prepare_call

prepare_call(workflow, lambda wildcards: JOBS.names_of_wildcards(wildcards))
# Jobs of a cluster start later, and read the configuration of the moment when they were planned.
RULES = open_workflow(
    with_plain_errors(frozen_configuration)(
        "config", workflow.is_main_process, is_real_run(workflow)
    ),
    workflow.config_settings,
    workflow.is_main_process,
    is_real_run(workflow),
)


wildcard_constraints:
    experiment=r"[A-Za-z0-9][A-Za-z0-9_]*",
    corpus=r"[A-Za-z0-9][A-Za-z0-9_]*",
    tokenizer=r"[A-Za-z0-9][A-Za-z0-9_]*",
    run=r"[A-Za-z0-9][A-Za-z0-9_]*-s[0-9]+",
    suite=r"[A-Za-z0-9][A-Za-z0-9_]*",
    task=r"[A-Za-z0-9][A-Za-z0-9_]*",
    batch=r"batch_[0-9]+",
    source=r"[A-Za-z0-9][A-Za-z0-9_]*",
    vocabulary=r"[A-Za-z0-9][A-Za-z0-9_]*",
    selection=r"[A-Za-z0-9][A-Za-z0-9_]*",
    baseline=r"[A-Za-z0-9][A-Za-z0-9_]*",
    sweep=r"[A-Za-z0-9][A-Za-z0-9_]*",
    analysis=r"[A-Za-z0-9][A-Za-z0-9_]*",
    model=r"(?:imported-)?[A-Za-z0-9][A-Za-z0-9_]*-[0-9a-f]{16}(?:/milestones/"
    + MILESTONE_NAME
    + r")?",
    milestone=MILESTONE_NAME,
    address=r"[A-Za-z0-9][A-Za-z0-9_]*-[0-9a-f]{16}",


# A rule says what it writes, and its command. What it reads (`inputs`), its log, benchmark, conda environment, threads,
# resources and parameters follow from the record of its stage, on its function in
# scripts/hatchery/<package>/stages/<rule>.py. `make show RULE=...` prints them of an example.
RULES.complete_rules(workflow)
# Where files lie that are named by wildcards: of the stages that make data, and of experiments and studies.
JOBS, DATA, RESULTS = RULES.jobs, RULES.jobs.data, RULES.jobs.results
inputs, recorded = RULES.inputs, RULES.recorded


include: "workflow/rules/sources.smk"
include: "workflow/rules/corpora.smk"
include: "workflow/rules/tokenization.smk"
include: "workflow/rules/pretraining.smk"
include: "workflow/rules/evaluation.smk"
include: "workflow/rules/analysis.smk"
include: "workflow/rules/studies.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/pages.smk"


rule all:
    default_target: True
    input:
        RULES.default_pages(),
    localrule: True


# Mistakes are reported before anything is planned, missing data before the first job.
check_request(RULES, workflow)


# Not in a dry run, which creates nothing.
onstart:
    require_raw_data(RULES.project, workflow.dag)
    RULES.start(workflow.dag_settings)
    begin_jobs(workflow.dag)


onsuccess:
    show_results(RULES.project)
