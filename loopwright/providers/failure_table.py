"""The one table of failures: codes, texts, statuses and names of exceptions to `ModelErrorKind`.

Only data, and the look-ups in it. In which order they are asked is said in `failures`.
"""

import re
from collections.abc import Collection, Iterable

from loopwright.errors import ModelErrorKind, RequestPart

Kinds = tuple[tuple[re.Pattern[str], ModelErrorKind], ...]


def _patterns(*rows: tuple[str, ModelErrorKind]) -> Kinds:
    return tuple((re.compile(words, re.IGNORECASE), kind) for words, kind in rows)


CODES = _patterns(
    # What was sent does not fit.
    (
        r"context_(length|window|size)_exceeded|exceed_context_size|context_overflow",
        "context_overflow",
    ),
    (r"string_above_max_length|(prompt|input)_too_long|^1261$", "context_overflow"),
    (
        r"content_?(filter|policy)|policy_violation|moderation|data_inspection_failed",
        "content_policy",
    ),
    (r"responsible_?ai|prompt_blocked|^1301$", "content_policy"),
    # Money: no waiting helps.
    (r"insufficient_(quota|balance|credits?|funds)|billing|payment_required", "billing"),
    (
        r"credits?_(balance|limit|exhausted)|(out_of|no)_credits?|arrearage|quota_exceeded",
        "billing",
    ),
    (r"^1113$", "billing"),
    # Who asks.
    (r"(invalid|incorrect|expired|missing)_?api_?key|api_?key_?(invalid|expired)", "auth"),
    (r"authentication_error|unauthenticated|unauthorized|permission_(denied|error)", "auth"),
    (r"invalid_token|token_expired|access_denied|account_deactivated", "auth"),
    # What was asked.
    (
        r"(unknown|unsupported|unrecognized|invalid|missing_required)_(parameter|value|field)",
        "bad_request",
    ),
    (r"model_?not_?found|unsupported_model|request_too_large", "bad_request"),
    # How busy the server is.
    (r"rate_?limit|too_many_requests|throttl|resource_exhausted", "rate_limit"),
    (r"overloaded|capacity_exceeded|^unavailable$|engine_overloaded", "overloaded"),
    (r"^deadline_exceeded$|timeout_error|request_timeout", "timeout"),
    # What the machine says.
    (r"^(ERR_CANCELED|ABORT_ERR|ECANCELED)$", "cancelled"),
    (r"^(ENOSPC|EDQUOT)$", "storage_full"),
    (r"^(ETIMEDOUT|ESOCKETTIMEDOUT)$|_TIMEOUT$", "timeout"),
    (r"CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|^ERR_(TLS|SSL)", "tls"),
    (r"^(ECONN\w+|EPIPE|EAI_\w+|ENOTFOUND|E(HOST|NET)(UNREACH|DOWN))$|^UND_ERR_SOCKET$", "network"),
    (r"^ERR_INVALID_(URL|PROTOCOL)$|^EPROTONOSUPPORT$", "bad_request"),
)
"""Codes and types that say more than the status and the text they come with (K26)."""

TYPES = _patterns(
    (r"^(api|server|internal|internal_server|upstream)_error$|^internal$", "server_error"),
    (r"^(invalid_request|not_found|bad_request)_error$|^invalid_argument$", "bad_request"),
)
"""General types: they count only where there is no status, as in a stream that began well."""

OVERFLOW = re.compile(
    r"maximum context length|context (window|size|length)|context_length_exceeded"
    r"|maximum( allowed)? (input|prompt) length|(prompt|input|request) (is |was )?too long"
    r"|input token count.* exceeds|reduce the length of the (messages|prompt|input)"
    r"|model token limit|(prompt|input|messages?) exceeds? the (model|maximum)"
    r"|上下文(长度|窗口|过长|超)|(输入|提示词?|消息).{0,12}(过长|太长|超(过|出|长))"
    r"|超(过|出).{0,12}(上下文|最大(输入)?长度|token)",
    re.IGNORECASE,
)
"""Words of servers for a request that is larger than the context."""

POLICY = re.compile(
    r"content management policy|content (policy|filter)|safety (system|policy)|usage polic(y|ies)"
    r"|flagged (as|by|for)|敏感(内容|信息|词)|内容.{0,6}(安全|审核|违规|不合规)|违规内容",
    re.IGNORECASE,
)
BILLING = re.compile(
    r"insufficient[ _](quota|credits?|balance|funds)|credit balance|(no|out of) credits?\b"
    r"|(exceeded|reached|over) your (current |monthly |spending )*(quota|usage limit|budget)"
    r"|billing|payment (is )?required|(monthly|spending|spend) (usage )?(limit|cap|quota)"
    r"|account.{0,20}(arrears|overdue)|余额不足|欠费|(额度|配额|套餐|资源包).{0,6}(不足|用完|用尽|耗尽|到期)"
    r"|请(先)?充值",
    re.IGNORECASE,
)
TLS = re.compile(
    r"certificate|self[- ]signed|hostname mismatch|WRONG_VERSION_NUMBER|unknown ca\b"
    r"|(tls|ssl).{0,20}handshake|handshake.{0,20}(tls|ssl)|证书",
    re.IGNORECASE,
)

REFUSED: tuple[tuple[re.Pattern[str], RequestPart], ...] = (
    (
        re.compile(
            r"signature.{0,60}(thinking|reasoning)|(thinking|reasoning).{0,60}signature"
            r"|thinking.?block|redacted_thinking|encrypted_content|reasoning_content"
            r"|reasoning.{0,40}(not found|without its required|not supported)",
            re.IGNORECASE | re.DOTALL,
        ),
        "thinking",
    ),
    (re.compile(r"\bimages?\b|image_url|vision|multi-?modal|图(片|像)", re.IGNORECASE), "images"),
)
"""Words for a part of a request without which it may be sent again."""

NAMES = _patterns(
    (r"ContextOverflow", "context_overflow"),
    (r"Timeout|DeadlineExceeded", "timeout"),
    (r"CertVerification|CertificateError|TLSError", "tls"),
    (r"UnsupportedProtocol|InvalidURL|InvalidSchema|MissingSchema|LocalProtocol", "bad_request"),
    (r"Authentication|PermissionDenied|Unauthenticated", "auth"),
    (r"RateLimit|TooManyRequests|ResourceExhausted|Throttl", "rate_limit"),
    (r"ModelInvalidRequest|ModelNotFound|^BadRequestError$", "bad_request"),
    (r"ModelRefusal|ContentFilter", "content_policy"),
    (r"Overloaded|ServiceUnavailable", "overloaded"),
    (r"ModelAPIError|InternalServerError", "server_error"),
    (r"Connect|Network|Reset|Refused|BrokenPipe|gaierror|NameResolution|Disconnected", "network"),
    (r"ReadError|WriteError|RemoteProtocol|Transport|IncompleteRead|ChunkedEncoding", "network"),
)
"""Names of exception classes: of the exception, of what it derives from, or of what caused it. The
order of the rows goes first: what caused a failure says more than what a client made of it."""


CANCELLED = re.compile(r"^(AbortError|Aborted|CancelledError|.*Cancell?edException)$")
"""Names of exceptions by which a request is given up from our side."""


def look_up(table: Kinds, words: Iterable[str]) -> ModelErrorKind | None:
    """The kind of the first word that a row knows; the order of the words goes first."""
    for word in words:
        for pattern, kind in table:
            if pattern.search(word):
                return kind
    return None


def kind_of_names(names: Collection[str]) -> ModelErrorKind | None:
    """The kind of the first row that knows one of the names."""
    rows = (kind for pattern, kind in NAMES if any(map(pattern.search, names)))
    return next(rows, None)


def kind_of_status(status: int) -> ModelErrorKind:
    """What an HTTP status of 400 or more says by itself."""
    if status in _STATUSES:
        return _STATUSES[status]
    return "server_error" if status >= 500 else "bad_request"


_STATUSES: dict[int, ModelErrorKind] = {
    401: "auth",
    402: "billing",
    403: "auth",
    408: "timeout",
    409: "server_error",
    425: "server_error",
    429: "rate_limit",
    503: "overloaded",
    504: "timeout",
    507: "storage_full",
    529: "overloaded",
}
