"""The three ways in (Agent, LangServe, `langgraph dev`) to one agent, and that they behave alike.

The agent behind them is in `scripted`, the ways in are in `ways`, the processes in `processes`.
"""
