"""HTTP to the outside: one POST without redirects, within a time, to a place that is allowed."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from urllib.parse import urlsplit

import httpx

from gsid_service.notify.retry import DeliveryError

ANSWER_BYTES = 2000  # what is read of an answer, and 200 of it shown
RETRIED = frozenset({408, 425, 429})  # beside all from 500 on
THROTTLED = frozenset({429, 503})
GONE = 410


class UnsafeUrl(ValueError):
    """A place that messages do not go to."""


def check(url: str, allow_http: bool, hosts: tuple[str, ...]) -> None:
    """Refuse what is not https, or not on the list where there is one."""
    try:
        parsed = urlsplit(url)
        host, _ = parsed.hostname, parsed.port
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL) as error:
        raise UnsafeUrl(f"not a URL: {error}") from None
    if parsed.scheme not in {"http", "https"} or not host:
        raise UnsafeUrl("not a URL of the form https://host/path")
    if parsed.username or parsed.password:
        raise UnsafeUrl("holds a password; secrets come from secret_env or secret_file")
    check_host(host, parsed.scheme == "https" or allow_http, hosts)


def check_host(host: str, secure: bool, hosts: tuple[str, ...]) -> None:
    if not secure and not is_loopback(host):
        raise UnsafeUrl("http only to loopback, or with allow_http = true")
    if hosts and host not in hosts:
        raise UnsafeUrl(f"{host} is not in notify.hosts")


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def shown(url: str) -> str:
    """The place without its path, which may hold a secret."""
    parsed = urlsplit(url)
    port = f":{parsed.port}" if parsed.port else ""
    return f"{parsed.scheme}://{parsed.hostname}{port}"


class Poster:
    """One connection to one URL."""

    def __init__(self, url: str, seconds: float) -> None:
        self.url = url
        # Nothing from the environment: a proxy or netrc there is not meant for these messages.
        self.client = httpx.Client(timeout=seconds, follow_redirects=False, trust_env=False)

    def post(self, body: bytes, headers: Mapping[str, str]) -> str:
        """What the receiver answered; raises `DeliveryError` where it did not take the message."""
        sent = {"Content-Type": "application/json", "User-Agent": "gsid"} | dict(headers)
        try:
            with self.client.stream("POST", self.url, content=body, headers=sent) as answer:
                text = _beginning(answer)
        except httpx.HTTPError as error:
            reason = f"{type(error).__name__}: {error}".rstrip(": ")
            raise DeliveryError(reason, retry=True, everything=True) from None
        said = f"{answer.status_code} {answer.reason_phrase}: {text[:200]}".rstrip(": ")
        if not answer.is_success:
            raise _failure(answer, said)
        return said

    def close(self) -> None:
        self.client.close()


def _beginning(answer: httpx.Response) -> str:
    text = b""
    for chunk in answer.iter_bytes(ANSWER_BYTES):
        text += chunk
        if len(text) >= ANSWER_BYTES:
            break
    return " ".join(text.decode(errors="replace").replace("\0", "").split())


def _failure(answer: httpx.Response, said: str) -> DeliveryError:
    code = answer.status_code
    if code == GONE:
        return DeliveryError(said, retry=False, gone=True)
    after = retry_after(answer.headers.get("Retry-After"), datetime.now(UTC))
    retry = code in RETRIED or code >= 500
    return DeliveryError(said, retry, after, everything=code in THROTTLED and after is not None)


def retry_after(text: str | None, now: datetime) -> float | None:
    """Seconds, from seconds or a date; None for what is neither."""
    if text is None:
        return None
    if text.strip().isdecimal() and len(text.strip()) < 10:
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())
