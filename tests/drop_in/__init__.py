"""Tests of the checkpointer in the place of LangGraph's own, under the agents of other people."""
