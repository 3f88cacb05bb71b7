"""What is read from docstrings of the three styles."""

import pytest

from loopwright.tools.docstrings import read

GOOGLE = """Copy a file.

    Keeps the times. Note: links are followed.

    Args:
        source (str): where it is,
            from the root
        target: where it goes: a folder
            or a file
        *rest: more
    Returns:
        the new path
    Raises:
        OSError: if there is none

    Afterwards the target is flushed.
    """

NUMPY = """Copy a file.

    Keeps the times. Note: links are followed.

    Parameters
    ----------
    source : str
        where it is,
        from the root
    target : str, optional
        where it goes: a folder
        or a file

    Returns
    -------
    str
        the new path
    """

SPHINX = """Copy a file.

    Keeps the times. Note: links are followed.

    :param str source: where it is,
        from the root
    :param target: where it goes: a folder
        or a file
    :type target: str
    :raises OSError: if there is none
    :returns: the new path
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_the_three_styles_say_the_same(docstring: str) -> None:
    prose, described = read(docstring, ["source", "target"])
    assert prose.startswith("Copy a file.\n\nKeeps the times. Note: links are followed.")
    assert "new path" not in prose
    assert described == {
        "source": "where it is, from the root",
        "target": "where it goes: a folder or a file",
    }


def test_prose_behind_a_google_section_is_prose_again() -> None:
    assert read(GOOGLE, ["source", "target"])[0].endswith("\n\nAfterwards the target is flushed.")


def test_words_with_a_colon_are_no_parameter_unless_there_is_one_of_that_name() -> None:
    text = "Do it.\n\nArgs:\n    mode: one of\n    fast: quick and rough\n    slow: careful"
    assert read(text, ["mode"])[1] == {"mode": "one of fast: quick and rough slow: careful"}
    assert read(text, ["mode", "fast"])[1] == {
        "mode": "one of",
        "fast": "quick and rough slow: careful",
    }


def test_several_numpy_parameters_share_a_text() -> None:
    text = "Do it.\n\nParameters\n----------\nx, y : int\n    a place"
    assert read(text, ["x", "y"]) == ("Do it.", {"x": "a place", "y": "a place"})


@pytest.mark.parametrize("docstring", [None, "", "  \n "])
def test_no_docstring_says_nothing(docstring: str | None) -> None:
    assert read(docstring, ["x"]) == ("", {})


def test_a_parameter_without_text_is_not_described() -> None:
    assert read("Do it.\n\nArgs:\n    x:\n    y: why", ["x", "y"])[1] == {"y": "why"}


def test_a_sentence_that_ends_in_a_colon_is_prose() -> None:
    text = "Do one of:\n\n- this\n- that"
    assert read(text, ["this"]) == (text, {})
