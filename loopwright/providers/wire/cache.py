"""The key under which a server keeps the common beginning of a thread's requests (S1-21).

Whether a server takes one is said by its dialect.
"""

from hashlib import sha1

from loopwright.text import clean_text

_HEAD, _DIGEST = 22, 40


def cache_key(session: str | None, limit: int) -> str | None:
    """The key for a session's id, at most `limit` characters long; None for no session.

    An id that fits is its own key. A longer one, or one that is no valid text, becomes its first
    characters and a hash of all of it, or where there is no room for both, the hash alone: equal
    ids have equal keys, different ones different keys.
    """
    if not session or limit < 1:
        return None
    clean = clean_text(session)
    if clean == session and len(session) <= limit:
        return session
    digest = sha1(session.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    if limit < _HEAD + 1 + _DIGEST:
        return digest[:limit]
    return f"{clean[:_HEAD]}-{digest}"
