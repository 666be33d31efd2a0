"""An experiment with measurements, as stages write them, and the pages of another one."""

import pytest
from measured_experiment import experiment, two_models, two_models_once  # noqa: F401
from page_site import ROWS, Site, two_runs


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Two runs with all pages, only to be read."""
    site = two_runs(tmp_path_factory.mktemp("page"))
    site.write(ROWS)
    return site
