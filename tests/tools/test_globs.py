"""Which paths a pattern fits."""

import pytest

from loopwright.tools.globs import Glob


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/deep/a.py", True),
        ("*.py", "a.pyc", False),
        ("./*.py", "src/a.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("src/**/*.py", "lib/src/a.py", False),
        ("**/src/*.py", "lib/src/a.py", True),
        ("src/**", "src/x/a", True),
        ("**", "a/b/c", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[ab].txt", "b.txt", True),
        ("[!ab].txt", "b.txt", False),
        ("*.{yml,yaml}", "x/a.yaml", True),
        ("*.{yml,yaml}", "a.xml", False),
        ("{src,lib}/*.{c,h}", "lib/a.h", True),
        ("a{,b}", "a", True),
        ("*.PY", "a.py", False),
        ("a{b", "a{b", True),
        ("**/a/**/b/**/c", "x/a/b/y/c", True),
    ],
)
def test_a_pattern_fits_as_in_a_shell(pattern: str, path: str, fits: bool) -> None:
    assert Glob(pattern).matches(path) is fits


def test_many_stars_take_no_longer() -> None:
    assert not Glob("**/" * 50 + "b").matches("a/" * 60 + "a")


@pytest.mark.parametrize("pattern", ["", "  ", "{a,b}" * 7])
def test_a_pattern_that_makes_no_sense_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        Glob(pattern)
