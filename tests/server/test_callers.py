"""Who callers are: by a header, by a certificate; and what is told of them."""

import concurrent.futures
import json
import ssl
import urllib.request

import grpc
import pytest
from colcast.server import ServerProcess
from tensorflow_serving.apis import prediction_service_pb2_grpc

from .callers import FLAG, by, ranked
from .metrics_page import Metrics, status
from .tls import Authority, config_flag


def test_names_that_clients_make_up_take_no_memory(ranker_base_path, monitoring, connect):
    with ServerProcess("ranker", ranker_base_path, [*monitoring, FLAG]) as server:
        stubs = connect(server.target)
        request = stubs.request(ranked(1))

        def ask(caller: str) -> None:
            stubs.prediction.Predict(request, timeout=120, metadata=by(caller))

        ask("<b>batch</b>")
        (caller,) = status(server)["callers"]
        assert (caller["caller"], caller["requests"], caller["rows"]) == ("<b>batch</b>", 1, 1)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, (f"made-up-{number}" for number in range(2999))))
        ask("x" * 1000)
        stubs.predict(ranked(1))
        page = Metrics(server)
        names = {s.labels["caller"] for s in page.samples if s.name.startswith(":colcast:caller_")}
        assert len(names) == 102
        assert page.value(":colcast:caller_requests", caller="other") == 2900
        assert page.value(":colcast:caller_requests", caller="unnamed") == 2


@pytest.fixture(scope="module", name="authority")
def _authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"), "ours")


def test_a_certificate_names_the_caller(ranker_base_path, monitoring, authority, tmp_path, connect):
    root = authority.root.read_text()
    tls = config_flag(
        tmp_path / "tls.cfg", authority.issue("server"), custom_ca=root, client_verify=True
    )
    flags = [tls, *monitoring, "--caller_certificate"]
    request = connect("127.0.0.1:1").request(ranked(6))
    with ServerProcess("ranker", ranker_base_path, flags) as server:

        def ask(client: str, names: str) -> None:
            key, chain = authority.issue(client, names).pem
            credentials = grpc.ssl_channel_credentials(root.encode(), key, chain)
            with grpc.secure_channel(server.target, credentials) as channel:
                stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
                # What a client says besides counts for nothing.
                stub.Predict(request, timeout=120, metadata=by("search"))

        ask("batch", "IP:127.0.0.1")
        ask("feed", "IP:127.0.0.1")
        ask("batch", "DNS:feed")
        ask("feed", "DNS:feed,URI:batch")
        context = ssl.create_default_context(cafile=authority.root)
        asking = authority.issue("asking")
        context.load_cert_chain(asking.chain, asking.key)
        url = f"https://{server.rest_target}/status.json"
        with urllib.request.urlopen(url, context=context, timeout=120) as answer:
            callers = json.load(answer)["callers"]
        assert {one["caller"]: one["requests"] for one in callers} == {"batch": 2, "feed": 2}


def test_without_the_flags_nobody_is_asked(server, stubs):
    stubs.prediction.Predict(stubs.request(ranked(3)), timeout=120, metadata=by("batch"))
    assert "caller" not in server.log()
