"""What of `loopwright.serve` needs which extra."""

import subprocess
import sys

import pytest

import loopwright.serve
from loopwright import MissingExtraError


@pytest.mark.parametrize("name", ["create_app", "run"])
def test_without_the_extra_its_name_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("loopwright.serve.app", "loopwright.serve.server"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "langserve", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'loopwright\[serve\]'"):
        getattr(loopwright.serve, name)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    name = "creat_app"
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        getattr(loopwright.serve, name)


def test_the_dev_server_s_graph_needs_neither_langserve_nor_fastapi() -> None:
    script = (
        "import sys, loopwright.serve.studio;"
        "print(*{'fastapi', 'langserve', 'uvicorn', 'openai'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (run.stdout.strip(), run.stderr) == ("", "")
