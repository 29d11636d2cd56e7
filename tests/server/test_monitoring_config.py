"""Where --monitoring_config_file puts the metrics page."""

import urllib.error

import pytest
from colcast.server import ServerFailedError, ServerProcess

from .metrics_page import Metrics


def test_the_page_is_where_the_configuration_says(tmp_path, ranker_base_path):
    config = tmp_path / "monitoring.config"
    config.write_text('prometheus_config { enable: true path: "/figures" }')
    flags = ["--rest_api_port=-1", f"--monitoring_config_file={config}"]
    with ServerProcess("ranker", ranker_base_path, flags) as server:
        assert Metrics(server, "/figures").samples
        with pytest.raises(urllib.error.HTTPError, match="404"):
            Metrics(server)


@pytest.mark.parametrize("text", ["", "prometheus_config { enable: false }"])
def test_there_is_no_page_unless_it_is_enabled(tmp_path, ranker_base_path, text):
    config = tmp_path / "monitoring.config"
    config.write_text(text)
    flags = ["--rest_api_port=-1", f"--monitoring_config_file={config}"]
    with (
        ServerProcess("ranker", ranker_base_path, flags) as server,
        pytest.raises(urllib.error.HTTPError, match="404"),
    ):
        Metrics(server)


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("prometheus_config { enabled: true }", "enabled"),
        ('prometheus_config { enable: true path: "figures" }', '"figures"'),
        ('prometheus_config { enable: true path: "/" }', '"/"'),
    ],
)
def test_a_wrong_configuration_is_refused_by_name(tmp_path, ranker_base_path, text, culprit):
    config = tmp_path / "monitoring.config"
    config.write_text(text)
    flags = ["--rest_api_port=-1", f"--monitoring_config_file={config}"]
    with (
        pytest.raises(ServerFailedError) as error,
        ServerProcess("ranker", ranker_base_path, flags),
    ):
        pass
    assert "--monitoring_config_file" in str(error.value)
    assert str(config) in str(error.value)
    assert culprit in str(error.value)
