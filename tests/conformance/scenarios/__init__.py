"""Scripts in words: what a user, a model, a tool and a crash do to a thread, and in which order.

What a script must come to is said by the `expect` of its case.
"""
