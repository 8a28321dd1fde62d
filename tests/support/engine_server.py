"""The child process of `engine.py`: one llama.cpp server until standard input ends.

    python -m tests.support.engine_server MODEL.gguf ALIAS [embeddings]

prints `http://127.0.0.1:PORT` once it listens. Because it ends with its standard input, no parent can leave it behind.
"""

import os
import sys

import xllamacpp

SLOTS = 4
CONTEXT_PER_SLOT = 4096


def main() -> None:
    """Serve until standard input ends. Exit without destructors: the server's threads have nothing to save and would
    delay the exit."""
    params = xllamacpp.CommonParams()
    params.model.path, alias, *modes = sys.argv[1:]
    # With this setting the server computes embeddings only.
    if "embeddings" in modes:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.model_alias = {alias}
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * CONTEXT_PER_SLOT
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.warmup = False
    params.endpoint_metrics = True
    params.verbosity = 1  # errors only
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
