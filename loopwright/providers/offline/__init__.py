"""The offline model: a chat model of fixed rules that works without a key and a network.

It is not a language model, and says so. `model` has its face; nothing is imported here.
"""
