"""The rules that the project's files keep: pure functions from source to what breaks them.

`test_project.py` tries each on the project and on a small source that breaks it.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from inspect import isclass, isfunction

LINKS = ("graph", "nodes", "state", "tools")
"""The four links at the root. They show the design on the front page; no code goes through them."""

LAYERS = (
    ("base",),
    ("state",),
    ("providers", "memory", "tools"),
    (
        *("hooks", "outcome", "runs", "queues", "structured", "turns", "live"),
        *("cancelling", "judging", "limits", "repetition", "unfinished", "watching"),
        *("wallet", "budgets", "plans", "planning"),
    ),
    ("calls", "approvals", "attempts", "progress", "performing", "recovery"),
    ("nodes",),
    ("graph",),
    (
        *("transfer", "adjustable", "stored", "ongoing", "queued", "queueing", "agent", "loops"),
        "telemetry",
    ),
    ("presets", "replay", "serve", "cli", "testing", "__main__", "__init__"),
)
"""Lowest first: a module imports its own layer and those below. A module not named here is base."""

BROAD_CATCHES = {
    "loopwright/calls.py": "what a call's preparation or a hook raises becomes its result",
    "loopwright/performing.py": "what the hook behind a call raises becomes its result",
    "loopwright/tools/execution.py": "what a tool's body raises becomes the call's result",
    "loopwright/graph/guard.py": "what a node raises becomes the decision `fault`",
    "loopwright/telemetry/recording.py": "what an observer raises does not end the run it observes",
    "loopwright/state/linear_file.py": "what keeps a checkpoint from being stored is its run's",
    "loopwright/presets/planner/executor.py": "what a hook raises is the output of its call",
    "loopwright/presets/course/tools.py": "what a course tool raises becomes its call's result",
    "loopwright/presets/course/model.py": "what a course model raises becomes a failed answer",
    "loopwright/presets/course/projection.py": "what the runtime raises is a result of the course",
    "loopwright/cli/__init__.py": "the command line's outermost layer: a failure becomes one line",
    "loopwright/serve/app.py": "the server's outermost layer: a failure becomes an answer",
}
"""The only files that may catch `Exception` or more, each with its reason."""

MOST_LINES_OF_A_FILE = 300
MOST_LINES_OF_A_FUNCTION = 60

_RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
_BROAD = {"Exception", "BaseException"}
_WAIVER = re.compile(r"#\s*noqa\b.*\b(C901|PLR09)")
# Put together from parts, so that this file does not hold what it looks for.
_FOLDERS = [rf"(?<![\w.~-])/{folder}/" for folder in ("work", "tmp/w", "root")]
_HOSTS = [name + r"\." + end for name, end in (("pypi", "org"), ("pythonhosted", "org"))]
_HOSTS += [name + r"\." + end for name, end in (("npmjs", "(org|com)"), ("debian", "org"))]
_NOT_FOR_A_REPOSITORY = re.compile("|".join(_FOLDERS + _HOSTS))


def imports(
    module: str, tree: ast.Module, modules: Collection[str], *, is_package: bool = False
) -> Iterator[str]:
    """The modules of the package that one of them imports, at the top or inside a function.

    A name taken from the package itself (`from loopwright import Agent`) counts as an import of
    `loopwright`, unless it is one of its `modules`.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = _absolute(node, module.split("."), is_package)
        else:
            continue
        ours = (name for name in names if name.split(".")[0] == "loopwright")
        yield from (name if _part(name) in modules else "loopwright" for name in ours)


def _absolute(node: ast.ImportFrom, module: list[str], is_package: bool) -> list[str]:
    above = module[: len(module) - node.level + is_package] if node.level else []
    origin = ".".join([*above, *([node.module] if node.module else [])])
    return [f"{origin}.{a.name}" for a in node.names] if origin == "loopwright" else [origin]


def _part(module: str) -> str:
    """`nodes` for `loopwright.nodes.model`, `__init__` for the package itself."""
    return [*module.split("."), "__init__"][1]


def upward_imports(edges: Iterable[tuple[str, str]]) -> list[str]:
    """Of the pairs (module, imported module), those that go from a lower layer to a higher one."""
    return [
        f"{module} imports {target}"
        for module, target in edges
        if _RANK.get(_part(target), 0) > _RANK.get(_part(module), 0)
    ]


def imports_through_links(tree: ast.Module) -> list[str]:
    """The absolute imports that would find a link at the root instead of the package's folder."""
    nodes = list(ast.walk(tree))
    names = [a.name for node in nodes if isinstance(node, ast.Import) for a in node.names]
    names += [n.module or "" for n in nodes if isinstance(n, ast.ImportFrom) and not n.level]
    return [name for name in names if name.split(".")[0] in LINKS]


def out_of_order(names: list[str]) -> list[str]:
    """The names that are not where the order of `__all__` puts them: constants, classes, the rest.

    A name given twice is out of order too.
    """
    expected = sorted(set(names), key=lambda n: (not n.isupper(), not n[0].isupper(), n))
    return [name for at, name in enumerate(names) if expected[at : at + 1] != [name]]


def undocumented(public: Mapping[str, object], documented: Collection[str]) -> list[str]:
    """The classes and functions without a docstring of their own, and other undocumented values."""

    def has_docstring(name: str, value: object) -> bool:
        if isclass(value):
            text = vars(value).get("__doc__") or ""
            return bool(text) and not text.startswith(f"{value.__name__}(")  # a dataclass's own
        return bool(value.__doc__) if isfunction(value) else name in documented

    return [name for name, value in public.items() if not has_docstring(name, value)]


def documented_values(tree: ast.Module) -> set[str]:
    """The names that a module assigns at its top level with a docstring below."""
    return {
        target.id
        for node, below in zip(tree.body, tree.body[1:], strict=False)
        for target in _targets(node)
        if isinstance(target, ast.Name) and _is_docstring(below)
    }


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else []


def _is_docstring(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def style_faults(source: str, file: str) -> list[str]:
    """What a module of the package breaks: docstring, length, waivers, catching too broadly."""
    tree = ast.parse(source)
    faults = [] if ast.get_docstring(tree) else ["no module docstring"]
    if source.count("\n") > MOST_LINES_OF_A_FILE:
        faults.append("file too long")
    if _WAIVER.search(source):
        faults.append("complexity waived")
    faults += [f"{name} too long" for name in _long_functions(tree)]
    if file not in BROAD_CATCHES:
        faults += [f"catches broadly in line {line}" for line in _broad_catches(tree)]
    return faults


def _long_functions(tree: ast.Module) -> list[str]:
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return [f.name for f in functions if _lines(f) > MOST_LINES_OF_A_FUNCTION]


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _broad_catches(tree: ast.Module) -> list[int]:
    """The lines of `except Exception`, of a bare `except`, and of `suppress(Exception)`."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.ExceptHandler) and _is_broad(node) and not _passes_on(node))
        or (isinstance(node, ast.Call) and _is_broad_suppress(node))
    ]


def _is_broad(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or bool(_names(handler.type) & _BROAD)


def _passes_on(handler: ast.ExceptHandler) -> bool:
    """Whether a handler only undoes something: its last word is a bare `raise`, on every way."""
    last = handler.body[-1]
    leaves = any(isinstance(node, ast.Return) for node in ast.walk(handler))
    return isinstance(last, ast.Raise) and last.exc is None and not leaves


def _is_broad_suppress(call: ast.Call) -> bool:
    names = set().union(*(_names(argument) for argument in call.args))
    return ast.unparse(call.func).split(".")[-1] == "suppress" and bool(names & _BROAD)


def _names(expression: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def unwanted_text(text: str) -> list[str]:
    """The folders of one machine and the registry hosts that a text names."""
    return [match.group() for match in _NOT_FOR_A_REPOSITORY.finditer(text)]
