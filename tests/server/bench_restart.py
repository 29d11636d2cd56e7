"""How soon a server that was killed answers again: python -m tests.server.bench_restart [PATH].

Without a base path it is the MovieLens model that `make demo` has made. The time runs from the
start of the new process to the answer of its health check, as a probe would see it.
"""

import argparse
import sys
import time
from pathlib import Path
from statistics import median

import grpc
from colcast.loadtest.variants import Column, Variant, measure_variants
from colcast.server import ServerProcess
from grpc_health.v1 import health_pb2, health_pb2_grpc

ROOT = Path(__file__).resolve().parents[2]


def seconds_to_serve(server: ServerProcess) -> float:
    """Starts the server, asks for its health until it serves, and kills it."""
    began = time.perf_counter()
    with server, grpc.insecure_channel(server.target) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        seconds = time.perf_counter() - began
        server.kill()
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    return seconds


def main(argv: list[str] | None = None) -> int:
    """Prints the times of ten restarts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base_path", nargs="?", default=ROOT / "build" / "movielens" / "model")
    base_path = Path(parser.parse_args(argv).base_path)
    if not base_path.is_dir():
        print(f"{base_path} is not there; make demo makes the MovieLens model")
        return 1
    seconds = Variant(str(base_path), lambda _: seconds_to_serve(ServerProcess("model", base_path)))
    columns = [Column(it.__name__, float, ".2f", it) for it in (min, median, max)]
    measure_variants([("serving again after, s", [seconds])], 10, columns)
    return 0


if __name__ == "__main__":
    sys.exit(main())
