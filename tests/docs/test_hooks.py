"""The page about hooks has a section with an example for every hook, in the order of their use.

That the examples hold is shown by `test_examples`, which runs them.
"""

import re
from dataclasses import fields
from pathlib import Path

from loopwright import Hooks, Tool

PAGE = Path(__file__).parents[2] / "docs" / "hooks.md"


def test_every_hook_has_a_section_with_an_example_that_uses_it() -> None:
    _, *sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    by_name = {section.partition("\n")[0]: section for section in sections}
    of_a_tool = [field.name for field in fields(Tool) if field.name == "prepare_arguments"]
    assert list(by_name) == [*(field.name for field in fields(Hooks)), *of_a_tool]
    for name, section in by_name.items():
        code = "".join(re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL))
        assert f"{name}=" in code and "assert " in code, name
