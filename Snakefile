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

from hatchery.os_errors import writing_refused

if refused := writing_refused(Path()):
    raise SystemExit(f"error: {refused}")

from hatchery.experiment.invocation import frozen_configuration
from hatchery.workflow.rules import plainly
from hatchery.workflow.open_workflow import open_workflow
from hatchery.workflow.snakemake_call import begin_jobs, is_real_run, prepare_call

prepare_call(workflow, lambda wildcards: LAYOUT.words(wildcards))
# Jobs of a cluster start later, and read the configuration of the moment when they were planned.
LAYOUT = open_workflow(
    plainly(frozen_configuration)(
        "config", workflow.is_main_process, is_real_run(workflow)
    ),
    config,
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
    model=r"[A-Za-z0-9][A-Za-z0-9_]*-[0-9a-f]{16}",
    address=r"[A-Za-z0-9][A-Za-z0-9_]*-[0-9a-f]{16}",


# Every rule takes what is the same in all of them (log, benchmark, environment, threads, resources, settings and the
# file with its call) from the record of its stage in scripts/hatchery/stages/.


include: "workflow/rules/sources.smk"
include: "workflow/rules/corpora.smk"
include: "workflow/rules/tokenization.smk"
include: "workflow/rules/pretraining.smk"
include: "workflow/rules/evaluation.smk"
include: "workflow/rules/analysis.smk"
include: "workflow/rules/studies.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/pages.smk"


# Light ones, and those that need the network, run on the machine where this command runs.
workflow.localrules("all", *LAYOUT.local_rules())


rule all:
    default_target: True
    input:
        LAYOUT.default_pages(),


# Mistakes are reported before anything is planned, missing data before the first job.
LAYOUT.check_request(workflow)


# Not in a dry run, which creates nothing.
onstart:
    LAYOUT.require_raw_data(workflow.dag)
    LAYOUT.start(workflow.dag_settings)
    begin_jobs(workflow.dag)


onsuccess:
    LAYOUT.show_summaries()
