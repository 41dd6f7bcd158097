"""The service under call, as the telephone company reaches it: addresses, signatures, HTTP."""

from dataclasses import dataclass
from urllib.parse import SplitResult, urlencode, urlsplit

import aiohttp
import yarl
from twilio.request_validator import RequestValidator

from ivr.phone.board import Form

VOICE_PATH = "/twilio/voice"
STATUS_PATH = "/twilio/status"
WEBHOOK_TIMEOUT_S = 15.0
DEFAULT_ACCOUNT_SID = "AC" + "0123456789abcdef" * 2

_SECURE = {"http": False, "https": True, "ws": False, "wss": True}


@dataclass(frozen=True)
class Service:
    """Where the service is, and what it is signed for with.

    url: its address; a path, if there is one, is the voice webhook's, else `/twilio/voice`.
    public_url: the address it believes to have: signatures are over it; requests go to `url` all the same.
    """

    url: str
    auth_token: str
    public_url: str | None = None
    account_sid: str = DEFAULT_ACCOUNT_SID

    @property
    def voice_url(self) -> str:
        """The voice webhook's public address."""
        path = urlsplit(self.url).path
        return self._public_base() + (path if path not in {"", "/"} else VOICE_PATH)

    @property
    def status_url(self) -> str:
        """The status callback's public address."""
        return self._public_base() + STATUS_PATH

    def reach(self, url: str) -> str:
        """Where to connect for a public URL: the same path at `url`'s host if it is the service's own."""
        wanted, public = urlsplit(url), urlsplit(self._public_base())
        if self.public_url is None or _origin(wanted) != _origin(public):
            return url
        actual = urlsplit(self.url)
        secure = _SECURE[actual.scheme]
        scheme = ("wss" if secure else "ws") if wanted.scheme in {"ws", "wss"} else actual.scheme
        return wanted._replace(scheme=scheme, netloc=actual.netloc).geturl()

    def sign(self, url: str, form: Form = ()) -> str:
        """`X-Twilio-Signature` over the public URL and the form."""
        signature: str = RequestValidator(self.auth_token).compute_signature(url, dict(form))
        return signature

    def _public_base(self) -> str:
        base = urlsplit(self.public_url or self.url)
        return f"{base.scheme}://{base.netloc}"


def _origin(parts: SplitResult) -> tuple[str, int]:
    """Host and port; http and ws are one, https and wss likewise."""
    return parts.hostname or "", parts.port or (443 if _SECURE.get(parts.scheme, False) else 80)


@dataclass(frozen=True)
class Answer:
    """A webhook's answer. status 0: none came, and `body` says why."""

    status: int
    content_type: str
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", errors="replace")


class Webhooks:
    """Signed requests to the service, as Twilio makes them: 15 s at most, one retry if nobody answers."""

    def __init__(self, service: Service, http: aiohttp.ClientSession) -> None:
        self._service = service
        self._http = http

    async def ask(self, url: str, method: str, form: Form, idempotency_token: str) -> Answer:
        """Request the public `url` with the form; never raises for the service's faults."""
        if method == "GET":
            joint = "&" if "?" in url else "?"
            url, form = f"{url}{joint}{urlencode(form)}" if form else url, ()
        headers = {
            "X-Twilio-Signature": self._service.sign(url, form),
            "I-Twilio-Idempotency-Token": idempotency_token,
        }
        try:
            return await self._send(url, method, form, headers)
        except aiohttp.ClientConnectorError:
            pass
        except (aiohttp.ClientError, TimeoutError) as error:
            return Answer(0, "", type(error).__name__.encode())
        try:
            return await self._send(url, method, form, headers)
        except (aiohttp.ClientError, TimeoutError) as error:
            return Answer(0, "", type(error).__name__.encode())

    async def _send(self, url: str, method: str, form: Form, headers: dict[str, str]) -> Answer:
        # The URL goes out byte for byte as it was signed: no second quoting.
        address = yarl.URL(self._service.reach(url), encoded=True)
        data = urlencode(form).encode() if method == "POST" else None
        if data is not None:
            headers = headers | {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
        async with self._http.request(
            method, address, data=data, headers=headers, allow_redirects=False
        ) as response:
            return Answer(response.status, response.headers.get("Content-Type", ""), await response.read())


def open_http() -> aiohttp.ClientSession:
    """The HTTP client of a call; close it."""
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=WEBHOOK_TIMEOUT_S))
