"""The drawing of the graph in docs/design.md is the one that the code makes.

The examples in the documentation are run by `test_examples`.
"""

from pathlib import Path

from loopwright import Agent

DESIGN = Path(__file__).parents[2] / "docs" / "design.md"


def test_the_drawing_of_the_graph_is_the_codes() -> None:
    text = DESIGN.read_text(encoding="utf-8")
    drawn = text.partition("<!-- graph -->\n```mermaid\n")[2].partition("\n```\n<!-- /graph -->")[0]
    with Agent("offline") as agent:
        made = agent.graph.get_graph().draw_mermaid().strip()
    assert [line.strip() for line in drawn.splitlines()] == [
        line.strip() for line in made.splitlines()
    ]
