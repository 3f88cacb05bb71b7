"""`loopwright graph`: the graph of an agent as Mermaid text, drawn by the code itself."""

from loopwright.agent import Agent
from loopwright.cli.screen import Screen


def graph() -> None:
    """Print the agent's graph as Mermaid text. No network is used."""
    with Agent(database=None) as agent:
        Screen().line(agent.graph.get_graph().draw_mermaid().rstrip())
