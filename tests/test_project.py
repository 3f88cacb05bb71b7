"""What holds for the project as a whole: layers, public names, house style, packaging.

What the code does is tested in the modules named after it; the rules are in `project_rules.py`.
"""

import ast
import importlib
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import loopwright
from tests import project_rules as rules

ROOT = Path(__file__).parent.parent


def sources(*folders: str) -> list[Path]:
    """The Python files below these folders of the project, as far as they exist."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def label(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_name(path: Path) -> str:
    return label(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


PACKAGE = sources("loopwright")
MODULES = {module_name(path).split(".")[1] for path in PACKAGE if module_name(path) != "loopwright"}


def test_modules_import_only_their_own_layer_and_lower_ones() -> None:
    edges = [
        (name, target)
        for path in PACKAGE
        for name in [module_name(path)]
        for target in rules.imports(
            name, parsed(path), MODULES, is_package=path.name == "__init__.py"
        )
    ]
    assert ("loopwright.emitter", "loopwright.events") in edges
    assert not rules.upward_imports(edges)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("loopwright.events", "import loopwright.state.messages"),
        ("loopwright.state.schema", "from loopwright.graph.assembly import build"),
        ("loopwright.nodes.model", "def late():\n    from loopwright import agent"),
        ("loopwright.graph.edges", "from ..serve import app"),
        ("loopwright.tools.contract", "from loopwright import Agent"),
    ],
)
def test_an_import_from_a_higher_layer_is_caught(module: str, source: str) -> None:
    found = rules.imports(module, ast.parse(source), {"state", "graph", "agent", "serve"})
    assert len(rules.upward_imports((module, target) for target in found)) == 1


def test_imports_of_the_own_layer_and_of_lower_ones_are_allowed() -> None:
    source = "import json\nfrom ..errors import E\nfrom loopwright.state import s\nfrom . import x"
    edges = [("loopwright.nodes.load", target) for target in imports_of_load(source)]
    assert [target for _, target in edges] == [
        "loopwright.errors",
        "loopwright.state",
        "loopwright.nodes",
    ]
    assert not rules.upward_imports(edges)


def imports_of_load(source: str) -> list[str]:
    modules = {"errors", "state", "nodes"}
    return list(rules.imports("loopwright.nodes.load", ast.parse(source), modules))


def test_public_names_are_sorted_resolve_and_are_documented() -> None:
    public = {name: getattr(loopwright, name) for name in loopwright.__all__}
    documented = set().union(*(rules.documented_values(parsed(path)) for path in PACKAGE))
    assert not rules.out_of_order(list(loopwright.__all__))
    assert not rules.undocumented(public, documented | {"__version__"})


def test_a_public_name_out_of_order_is_caught() -> None:
    assert rules.out_of_order(["LIMIT", "Agent", "Run", "build", "run"]) == []
    assert rules.out_of_order(["Run", "Agent"]) == ["Run", "Agent"]
    assert rules.out_of_order(["Agent", "Agent"]) == ["Agent"]


def test_an_undocumented_public_name_is_caught() -> None:
    bare = type("Bare", (Exception,), {})
    assert rules.undocumented({"Bare": bare, "limit": 3, "said": 4}, {"said"}) == ["Bare", "limit"]
    assert rules.documented_values(ast.parse('a = 1\n"""Said."""\nb: int = 2\nc = 3')) == {"a"}


@pytest.mark.parametrize("folder", ["loopwright", "tests", "examples", "benchmarks"])
def test_nothing_imports_through_the_links_at_the_root(folder: str) -> None:
    found = {label(path): rules.imports_through_links(parsed(path)) for path in sources(folder)}
    assert not {file: names for file, names in found.items() if names}


@pytest.mark.parametrize(
    "source", ["import tools", "import graph.edges as e", "from state import x"]
)
def test_an_import_through_a_link_is_caught(source: str) -> None:
    assert rules.imports_through_links(ast.parse(source))


def test_imports_of_the_package_s_own_folders_are_not_taken_for_links() -> None:
    source = "from .graph import edges\nfrom loopwright import tools\nimport loopwright.state"
    assert not rules.imports_through_links(ast.parse(source))


@pytest.mark.parametrize("name", rules.LINKS)
def test_the_links_at_the_root_point_into_the_package(name: str) -> None:
    assert os.readlink(ROOT / name) == f"loopwright/{name}"


@pytest.mark.parametrize("path", PACKAGE, ids=label)
def test_every_module_keeps_the_house_style(path: Path) -> None:
    assert not rules.style_faults(path.read_text(encoding="utf-8"), label(path))


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("x = 1\n" * 300, "file too long"),
        ("def f():\n" + "    x = 1\n" * 60, "f too long"),
        ("def f(): ...  # noqa: " + "C901", "complexity waived"),
        ("try: ...\nexcept Exception: ...", "catches broadly in line 3"),
        ("try: ...\nexcept (OSError, BaseException): ...", "catches broadly in line 3"),
        ("try: ...\nexcept: ...", "catches broadly in line 3"),
        ("with contextlib.suppress(Exception): ...", "catches broadly in line 2"),
    ],
)
def test_a_break_of_the_house_style_is_caught(body: str, fault: str) -> None:
    assert rules.style_faults(f'"""What lives here."""\n{body}', "loopwright/x.py") == [fault]
    assert rules.style_faults(body, "loopwright/x.py")[0] == "no module docstring"


def test_undoing_and_passing_on_is_not_catching() -> None:
    source = '"""What lives here."""\ntry: ...\nexcept BaseException:\n    undo()\n'
    assert not rules.style_faults(source + "    raise\n", "loopwright/x.py")
    assert rules.style_faults(source + "    if x: return\n    raise\n", "loopwright/x.py")
    assert rules.style_faults(source + "    raise OSError from None\n", "loopwright/x.py")


@pytest.mark.parametrize("file", rules.BROAD_CATCHES)
def test_a_place_that_may_catch_broadly_does_so(file: str) -> None:
    source = (ROOT / file).read_text(encoding="utf-8")
    assert not rules.style_faults(source, file)
    assert "catches broadly" in " ".join(rules.style_faults(source, "loopwright/x.py"))


def test_importing_the_package_loads_no_provider_and_no_server() -> None:
    script = "import sys, loopwright; print(*{'openai', 'fastapi', 'langserve'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert (run.stdout.strip(), run.stderr) == ("", "")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "loopwright",
        "-".join(wheel.name.split("-")[:2]) + ".dist-info",
    }
    assert {label(path) for path in PACKAGE} | {"loopwright/py.typed"} <= set(names)


def test_the_sdist_leaves_the_links_out(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 2)[1] for name in archive.getnames()}
    assert {"loopwright", "pyproject.toml", "LICENSE"} <= names
    assert not names & set(rules.LINKS)


def test_no_file_names_one_machine_s_folders_or_a_registry_s_host() -> None:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / name for name in listed.split("\0") if name]
    texts = {label(f): f.read_text(errors="ignore") for f in files if f.is_file()}
    assert "pyproject.toml" in texts
    assert not {name: found for name, text in texts.items() if (found := rules.unwanted_text(text))}


@pytest.mark.parametrize("parts", [("/work", "/main"), ("/tmp", "/w/x"), ("https://py", "pi.org")])
def test_a_machine_s_folder_or_a_registry_s_host_is_caught(parts: tuple[str, str]) -> None:
    assert rules.unwanted_text("see " + "".join(parts))
    assert not rules.unwanted_text("~/work/notes, home/root/x and tmp/words")


def test_constraints_are_exact_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if "==" not in line.split(";")[0] or "/" in line]


def test_the_graph_of_the_dev_server_is_a_factory_that_imports() -> None:
    config = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    assert config["graphs"]
    for value in config["graphs"].values():
        module, _, name = (value["path"] if isinstance(value, dict) else value).partition(":")
        assert "/" not in module, "the form that names a file would load it a second time"
        assert callable(getattr(importlib.import_module(module), name))
