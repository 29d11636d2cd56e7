"""What a server beside an accelerator gains, and the threshold that `colcast tune` finds for it.

python -m tests.loadtest.bench_offload

The accelerator is a stand-in: a server that takes one request at a time and answers it after a
fixed time and a time per row. What it answers is not looked at.
"""

import argparse
import asyncio
import threading

import grpc
from colcast.cli.main import main as colcast
from colcast.loadtest.formats import NO_STATES
from colcast.loadtest.zoo_models import exported
from tensorflow_serving.apis import predict_pb2


class Accelerator:
    """Answers after `fixed_ms` and `row_us` per row of the largest input, one after the other."""

    def __init__(self, fixed_ms: float, row_us: float) -> None:
        self.target = ""
        self._fixed, self._row = fixed_ms / 1e3, row_us / 1e6
        ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True).start()
        ready.wait()

    async def _serve(self, ready: threading.Event) -> None:
        turn = asyncio.Lock()

        async def predict(message: bytes, _: grpc.aio.ServicerContext) -> bytes:
            request = predict_pb2.PredictRequest.FromString(message)
            shapes = [one.tensor_shape.dim for one in request.inputs.values()]
            rows = max(dims[0].size for dims in shapes if dims)
            async with turn:
                await asyncio.sleep(self._fixed + self._row * rows)
            return b""

        server = grpc.aio.server()
        handler = grpc.unary_unary_rpc_method_handler(predict)
        service = "tensorflow.serving.PredictionService"
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(service, {"Predict": handler})]
        )
        self.target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        await server.start()
        ready.set()
        await server.wait_for_termination()


def main() -> None:
    """Tunes `wide` with an accelerator beside it, for a heavy-tailed mix of sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fixed-ms", type=float, default=4.0)
    parser.add_argument("--row-us", type=float, default=1.0)
    parser.add_argument("--sizes", default="lognormal:200:1.2")
    parser.add_argument("--sla-p95", type=float, default=25.0, help="in milliseconds")
    parser.add_argument("--seconds", type=float, default=2.0)
    args = parser.parse_args()
    accelerator = Accelerator(args.fixed_ms, args.row_us)
    colcast(
        [
            *("tune", "--model", "wide", "--model-base-path", str(exported("wide"))),
            *("--offload-target", accelerator.target, "--traffic", "zoo:wide"),
            *("--sizes", args.sizes, "--sla-p95", f"{args.sla_p95}ms"),
            *("--seconds", str(args.seconds), *(f"--flag={flag}" for flag in NO_STATES)),
        ]
    )


if __name__ == "__main__":
    main()
