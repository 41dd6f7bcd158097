"""Tools: requests to the business's own systems, as a flow file declares them, and how one is filled in.

What a caller or a model said goes into a request only encoded (URL, JSON); a secret only by the name of an
environment variable, which whoever sends the request fills in.
"""

import ipaddress
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from callflows.actions import Request
from callflows.fields import Line, Name, fault
from callflows.part import Part
from callflows.texts import Texts
from callflows.typed import Value

CALLER = "caller"
"""In a request `{caller}` is the caller's number; empty when it is withheld."""

_SLOT = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_ENV = re.compile(r"\$\{([A-Z][A-Z0-9_]{0,63})\}")
_OUR_OWN = ("IVR_", "TWILIO_", "OPENAI_", "AWS_", "PG")
"""Variables of the service itself: a business's file may not send them anywhere."""
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9\-]{0,63}")
_OUR_HEADERS = frozenset(
    [
        "host",
        "content-length",
        "content-type",
        "transfer-encoding",
        "connection",
        "idempotency-key",
        "callthread-signature",
    ]
)
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.\-]{0,251}[a-z0-9])?")
_MAX_BODY_DEPTH = 8


def env_names(text: str) -> list[str]:
    """The names of the environment variables that `text` refers to."""
    return _ENV.findall(text)


def fill_env(text: str, value: Callable[[str], str]) -> str:
    """`text` with each `${NAME}` replaced by its value; the value itself is not looked into."""
    return _ENV.sub(lambda match: value(match[1]), text)


def slots_of(values: Any) -> set[str]:
    """The names of the slots in every text of nested mappings and lists."""
    return {name for text in _strings(values) for name in _SLOT.findall(text)}


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(each)


# -- what a file may say ---------------------------------------------------------------------------------------


def _env_text(text: str) -> str:
    """Text in which `${NAME}` may stand, and no slot."""
    rest = _ENV.sub("", text)
    if re.search(r"[{}$]", rest):
        raise fault("only ${NAME} may stand in braces here", "like Bearer ${BOOKING_KEY}; no slots")
    if not rest.isascii() or not rest.isprintable():
        raise fault("holds a letter that cannot be sent here", "write plain ASCII")
    for name in env_names(text):
        if name.startswith(_OUR_OWN):
            hint = "give the business a secret of its own, like ${BOOKING_KEY}"
            raise fault(f"{name} belongs to this service and is sent to nobody", hint)
    return text


def _secret(text: str) -> str:
    if not _ENV.fullmatch(text):
        raise fault("a secret is the name of an environment variable", "like ${BOOKING_SECRET}")
    return _env_text(text)


def _header_name(name: str) -> str:
    if not _HEADER.fullmatch(name) or name.casefold() in _OUR_HEADERS:
        raise fault("not a header that may be set", "like Authorization; not Host or Content-Type")
    return name


def _host(text: str) -> str:
    host = text.strip().casefold()
    if not _HOST.fullmatch(host):
        raise fault("not the name of a host", "like api.example.com, without https:// and path")
    return host


def is_loopback(host: str) -> bool:
    """Whether a host's name, or address, is the machine itself: only for trying things out."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _url(text: str) -> str:
    hint = "like https://api.example.com/bookings/{day}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise fault("not a URL", hint) from None
    if re.search(r"[\s\\]", text) or not text.isascii() or not _HOST.fullmatch(host) or port == 0:
        raise fault("not a URL with a host's name", hint)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise fault("must begin with https://", f"{hint}; http:// is for this machine only")
    if "@" in parts.netloc or parts.fragment or "$" in text:
        raise fault("a URL here has no user, secret or fragment", "put secrets into headers: ${NAME}")
    if re.search(r"[{}]", _SLOT.sub("", text)) or "{" in parts.netloc:
        raise fault("only the name of a slot may stand in braces, after the host", hint)
    return text


def plain_url(text: str) -> str:
    """A URL without slots. Raises: pydantic's error with a hint."""
    if _SLOT.search(_url(text)):
        raise fault("no slot may stand here", "like https://api.example.com/calls")
    return text


def host_of(url: str) -> str:
    """The host of a checked URL."""
    return urlsplit(url).hostname or ""


def _body(value: Any) -> Any:
    if not isinstance(value, dict):
        raise fault("must be a mapping", "lines of `name: value`; values may be mappings and lists")
    _walk_body(value, 0)
    return value


def _walk_body(value: Any, depth: int) -> None:
    if depth > _MAX_BODY_DEPTH:
        raise fault("is nested too deeply", f"at most {_MAX_BODY_DEPTH} levels")
    if isinstance(value, str) and re.search(r"[{}]", _SLOT.sub("", value)):
        raise fault("only the name of a slot may stand in braces here", "like {order_number}")
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _walk_body(each, depth + 1)


def _result_path(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_\-]+(\.[A-Za-z0-9_\-]+)*", text):
        raise fault("not a place in an answer", "names and numbers with dots between: table.number, times.0")
    return text


EnvText = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_env_text)]
"""Text in which `${NAME}` stands for a value of the environment."""
Secret = Annotated[str, AfterValidator(_secret), WithJsonSchema({"type": "string", "pattern": r"^\$\{[A-Z]"})]
HeaderName = Annotated[str, AfterValidator(_header_name)]
Host = Annotated[str, AfterValidator(_host)]
ToolUrl = Annotated[str, Field(max_length=1_000), AfterValidator(_url)]
PlainUrl = Annotated[str, Field(max_length=1_000), AfterValidator(plain_url)]
_ResultPath = Annotated[str, Field(max_length=200), AfterValidator(_result_path)]


class Result(Value):
    """A value of the answer, which goes into a slot."""

    at: _ResultPath | None = Field(
        None, description="Where it stands: table.number, times.0; the slot's name if left out."
    )
    optional: bool = Field(False, description="The answer may lack it; the slot is then left as it is.")


class Tool(Part):
    """A request to a system of the business."""

    description: Line = Field(description="What it does; the speech model chooses by it.")
    url: ToolUrl = Field(
        description="https, its host among allow_hosts; {slot} in path and query is encoded."
    )
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    headers: dict[HeaderName, EnvText] = Field({}, max_length=20, description="With ${NAME} for secrets.")
    body: Annotated[dict[str, Any] | None, BeforeValidator(lambda v: v if v is None else _body(v))] = Field(
        None, description="Sent as JSON; a text that is just {slot} keeps its type (number, yes or no)."
    )
    secret: Secret | None = Field(
        None, description="${NAME} of the key that signs the request (HMAC-SHA256)."
    )
    parameters: dict[Name, Value] = Field(
        {}, max_length=12, description="What the speech model must give; kept in slots of these names."
    )
    result: dict[Name, Result] = Field({}, max_length=20, description="Slots filled from the answer.")
    say: Texts = Field({}, description="Said while it runs.")
    timeout_s: float = Field(5, ge=0.5, le=10, allow_inf_nan=False, description="For one attempt.")
    retries: int = Field(1, ge=0, le=2, description="Further attempts when it fails or does not answer.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.method in ("GET", "DELETE") and self.body is not None:
            raise fault(f"{self.method} has no body", "put values into the URL, or use method: POST")
        return self

    def reads(self) -> set[str]:
        """The slots that a request holds."""
        return slots_of([self.url, self.body]) - {CALLER}

    def env(self) -> list[str]:
        """The environment variables that a request needs."""
        return [name for text in (*self.headers.values(), self.secret or "") for name in env_names(text)]

    def request(self, values: Mapping[str, Any]) -> Request | None:
        """The request with `values` filled in; None where a value would change the URL's path."""
        url = filled_url(self.url, values)
        if url is None:
            return None
        body = None if self.body is None else json.dumps(_filled(self.body, values), ensure_ascii=False)
        headers = tuple(self.headers.items())
        secret = env_names(self.secret)[0] if self.secret else ""
        return Request(self.method, url, headers, body, secret, self.timeout_s, self.retries)

    def read(self, answer: object, region: str) -> dict[str, Any] | None:
        """The declared values of an answer (any JSON), by slot; None if one is missing or of another kind."""
        found: dict[str, Any] = {}
        for slot, wanted in self.result.items():
            raw = _at(answer, (wanted.at or slot).split("."))
            value = None if raw is None else wanted.read(raw, region)
            if value is not None:
                found[slot] = value
            elif raw is not None or not wanted.optional:
                return None
        return found


def filled_url(template: str, values: Mapping[str, Any]) -> str | None:
    """The URL with values encoded; None if one would be an empty or dotted step of the path."""
    path, mark, query = template.partition("?")
    steps = []
    for step in path.split("/")[3:]:
        filled = _SLOT.sub(lambda match: _encoded(values.get(match[1])), step)
        if _SLOT.search(step) and filled.strip(".") == "":
            return None
        steps.append(filled)
    start = "/".join(path.split("/")[:3])
    query = _SLOT.sub(lambda match: _encoded(values.get(match[1])), query)
    return f"{'/'.join([start, *steps])}{mark}{query}"


def _encoded(value: object) -> str:
    return quote(_plain(value), safe="")


def _plain(value: object) -> str:
    if value is None:
        return ""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(each, values) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(each, values) for each in value]
    if not isinstance(value, str):
        return value
    alone = _SLOT.fullmatch(value)
    if alone:
        return values.get(alone[1])
    return _SLOT.sub(lambda match: _plain(values.get(match[1])), value)


def _at(answer: object, steps: Iterable[str]) -> object:
    here = answer
    for step in steps:
        if isinstance(here, dict):
            here = here.get(step)
        elif isinstance(here, list) and step.isdecimal() and int(step) < len(here):
            here = here[int(step)]
        else:
            return None
    return here
