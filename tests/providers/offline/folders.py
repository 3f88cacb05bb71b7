"""Folders to ask about: other names, languages and styles of marks than the packaged sample has.

A line that holds a marked word but is no mark says `decoy`; every other one that `STYLES` finds is.
"""

from pathlib import Path

STYLES = (
    r"\b(TODO|FIXME|XXX|HACK|BUG|TBD)\b|@todo|@TODO|\[[ -]?\] \w|\\todo|todo!|unimplemented!"
    r"|[Tt]odo\b.*:|-- todo|# fixme|it\.todo|☐|待办"
)
"""A plain grep over `OTHER_STYLES`."""

OTHER_STYLES = {
    "LISEZMOI.md": "# Compteur\n\nUn petit outil pour compter les oiseaux.\n",
    "src/main.rs": (
        'fn main() {\n    todo!("read");\n    // FIXME panics\n    let todo_decoy = 3;\n'
        "    unimplemented!()\n}\n"
    ),
    "src/Lib.hs": "-- TODO write\nmain = undefined {- XXX types -}\n",
    "src/query.sql": "-- todo index\nSELECT 1; -- a HACK for the old server\n",
    "src/free.c": (
        "/* TODO(bob) free */\nint x; // works, but slow; HACK\n"
        "switch (s) { case TODO: break; /* decoy */ }\nenum { TODO, DECOY = 2 }; // decoy\n"
        "#warning TODO later\n"
    ),
    "src/app.py": (
        'STATES = ["TODO", "DONE"]  # decoy\nTODO = 3  # decoy\n'
        "todo: list[str] = []  # decoy\nmastodon = 1  # decoy TODOS\n"
        "def f() -> None:\n    # fixme: empty\n    raise NotImplementedError  # TODO\n"
    ),
    "src/adds.test.js": (
        'it.todo("adds");\n/** @TODO doc */\nconst s = { TODO: "decoy" };\n'
        "function f(todo: Decoy) {} // decoy\n"
    ),
    "src/Kotlin.kt": 'fun f() { TODO("not yet") }\n',
    "docs/paper.tex": "\\todo{cite}\nfine \\todo[inline]{more}\n",
    "docs/words.rst": (
        ".. todo:: the index\n\nA TODO list app is what everyone writes (decoy).\n"
        "This tool knows TODO, FIXME and XXX marks (decoy).\nTODO: say so\n"
    ),
    "notes with space/día: 3: notas.txt": (
        "todo el mundo lo sabe (decoy)\ntodo: comprar leche\n- [] sloppy box\n[ ] bare box\n"
        "☐ a box\n☑ decoy\n1. [ ] numbered box\nthe price is TBD\n- [x] TODO: decoy\n"
    ),
    "zh/说明.md": "# 说明\n\n- [ ] 写文档\n待办: 修复错误\n",
    "plan.org": "* TODO Write\n** DONE Read\n- [-] partial box\n- [X] done\n",
    "[id].tsx": "<p/>\n// FIXME a name in brackets\n",
    "crlf.txt": "one\r\nTODO: two\r\nthree\r\n",
    "page.html": "<p>Hi</p><!-- TODO: footer -->\n<!-- todo: nav -->\n",
    "run.bat": "REM TODO port\necho done\n",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write the files below a folder; line ends stay as they are given."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
    return folder


def other_styles(folder: Path) -> Path:
    """The folder of other names and styles, with binary files and links beside them."""
    write(folder, OTHER_STYLES)
    (folder / "data.bin").write_bytes(b"\0\1TODO: not text\n")
    (folder / "latin.txt").write_bytes(b"caf\xe9\nTODO: caf\xe9\n")
    (folder / "src" / "link.py").symlink_to("app.py")
    return folder


def many_files(folder: Path, count: int = 10_000) -> Path:
    """As many files in nested folders; every 50th has a mark in its third line."""
    for number in range(count):
        path = folder / f"part{number % 7}" / f"file {number}.{('c', 'md', 'go')[number % 3]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        mark = f"// FIXME: number {number}\n" if number % 50 == 0 else ""
        path.write_text(f"one\ntwo\n{mark}", encoding="utf-8")
    return folder
