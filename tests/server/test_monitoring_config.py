"""Where --monitoring_config_file puts the metrics page."""

import urllib.error

import pytest
from colcast.server import ServerProcess

from .metrics_page import Metrics


def test_the_page_is_where_the_configuration_says(tmp_path, ranker_base_path):
    config = tmp_path / "monitoring.config"
    config.write_text('prometheus_config { enable: true path: "/figures" }')
    flags = ["--rest_api_port=-1", f"--monitoring_config_file={config}"]
    with ServerProcess("ranker", ranker_base_path, flags) as server:
        assert Metrics(server, "/figures").samples
        with pytest.raises(urllib.error.HTTPError, match="404"):
            Metrics(server)
