"""Signatures: the public address counts, nothing a client can set does."""

import base64
import hashlib
import hmac
from urllib.parse import parse_qsl

import pytest
from starlette.datastructures import ImmutableMultiDict

from ivr.wire.signature import Form, Origin, SignatureChecker

TOKEN = "12345"
PUBLIC = "https://ivr.example.test"
INNER_HOST = "127.0.0.1:8000"
FIELDS = [("CallSid", "CA1"), ("From", "+15551230012"), ("To", "+15550009999"), ("ForwardedFrom", "")]


def form(*fields: tuple[str, str]) -> Form:
    return ImmutableMultiDict([*FIELDS, *fields])


def sign(url: str, fields: list[tuple[str, str]] | None = None, token: str = TOKEN) -> str:
    """Twilio's rule, from its documents: HMAC-SHA1 over the URL and the sorted names and values."""
    text = url + "".join(name + value for name, value in sorted(fields or []))
    return base64.b64encode(hmac.new(token.encode(), text.encode(), hashlib.sha1).digest()).decode()


def checker(
    public_url: str | None = PUBLIC, token: str | None = TOKEN, bind: str = "127.0.0.1"
) -> SignatureChecker:
    return SignatureChecker(token, public_url, bind)


def test_our_signing_in_this_test_is_twilios() -> None:
    # The worked example of Twilio's documents on request security.
    fields = (
        "CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212"
    )
    url = "https://mycompany.com/myapp.php?foo=1&bar=2"
    assert sign(url, parse_qsl(fields)) == "RSOYDt4T1cUTdK1PDd93/VVr8B8="


def test_b091_the_public_address_counts_behind_a_proxy() -> None:
    target = "/twilio/voice"
    right = sign(PUBLIC + target, FIELDS)
    wrong = ("B" if right[0] == "A" else "A") + right[1:]
    inner = sign(f"http://{INNER_HOST}{target}", FIELDS)
    evil = sign(f"https://evil.test{target}", FIELDS)
    check = checker()
    assert check.check_post(target, INNER_HOST, form(), right)
    for signature in (wrong, "", inner, evil):
        assert not check.check_post(target, INNER_HOST, form(), signature)
    assert not check.check_post(target, "evil.test", form(), evil)
    with_query = target + "?a=1&b=%20x"
    assert check.check_post(with_query, INNER_HOST, form(), sign(PUBLIC + with_query, FIELDS))
    assert not check.check_post(with_query, INNER_HOST, form(), right)
    assert not check.check_post(target + "/", INNER_HOST, form(), right)


def test_the_port_of_https_may_be_written() -> None:
    signature = sign("https://ivr.example.test:443/twilio/voice", FIELDS)
    assert checker().check_post("/twilio/voice", INNER_HOST, form(), signature)
    signature = sign("https://ivr.example.test/twilio/voice", FIELDS)
    assert checker(PUBLIC + ":443").check_post("/twilio/voice", INNER_HOST, form(), signature)


def test_a_path_in_the_public_address_is_kept() -> None:
    signature = sign("https://ivr.example.test/phones/twilio/voice", FIELDS)
    assert checker(PUBLIC + "/phones/").check_post("/twilio/voice", INNER_HOST, form(), signature)


def test_every_parameter_counts() -> None:
    signature = sign(PUBLIC + "/v", FIELDS)
    assert not checker().check_post("/v", INNER_HOST, form(("Extra", "1")), signature)
    twice = [*FIELDS, ("Mms", "b"), ("Mms", "a")]
    assert checker().check_post(
        "/v", INNER_HOST, form(("Mms", "b"), ("Mms", "a")), sign(PUBLIC + "/v", twice)
    )


def test_b096_the_handshake_is_signed_over_wss() -> None:
    target = "/twilio/media"
    for url in ("wss://ivr.example.test", "wss://ivr.example.test:443"):
        assert checker().check_handshake(target, INNER_HOST, sign(url + target))
        assert checker(PUBLIC + ":443").check_handshake(target, INNER_HOST, sign(url + target))
    for url in ("https://ivr.example.test", "ws://ivr.example.test", "wss://evil.test", f"ws://{INNER_HOST}"):
        assert not checker().check_handshake(target, INNER_HOST, sign(url + target))
    assert not checker().check_handshake(target, INNER_HOST, "")
    assert not checker().check_handshake(
        target, INNER_HOST, sign("wss://ivr.example.test" + target, token="x")
    )


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000", "127.0.0.1", "127.9.9.9:1"]
)
def test_without_a_public_address_this_machine_is_enough(host: str) -> None:
    check = checker(None)
    assert check.origin(host) == Origin(f"http://{host}")
    assert check.check_post("/v", host, form(), sign(f"http://{host}/v", FIELDS))
    assert check.check_handshake("/m", host, sign(f"ws://{host}/m"))


@pytest.mark.parametrize(
    ("bind", "host"),
    [
        ("0.0.0.0", "127.0.0.1:8000"),
        ("::", "[::1]:8000"),
        ("10.0.0.5", "127.0.0.1:8000"),
        ("127.0.0.1", "ivr.example.test"),
        ("127.0.0.1", "127.0.0.1.evil.test"),
        ("127.0.0.1", "127.0.0.1@evil.test"),
        ("127.0.0.1", "localhost/x"),
        ("127.0.0.1", ""),
    ],
)
def test_without_a_public_address_nothing_else_is_trusted(bind: str, host: str) -> None:
    check = checker(None, bind=bind)
    assert check.origin(host) is None
    assert not check.check_post("/v", host, form(), sign(f"http://{host}/v", FIELDS))
    assert not check.check_handshake("/m", host, sign(f"ws://{host}/m"))


@pytest.mark.parametrize("token", [None, ""])
def test_without_a_token_everything_is_refused(token: str | None) -> None:
    check = checker(token=token)
    assert not check.check_post("/v", INNER_HOST, form(), sign(PUBLIC + "/v", FIELDS, ""))
    assert not check.check_handshake("/m", INNER_HOST, sign("wss://ivr.example.test/m", token=""))


def test_the_origin_names_both_schemes() -> None:
    assert Origin(PUBLIC).ws_base == "wss://ivr.example.test"
    assert Origin("http://127.0.0.1:8000").ws_base == "ws://127.0.0.1:8000"


def test_a_subaccount_signs_with_its_own_token_and_for_itself_only() -> None:
    target, sub, other = "/twilio/voice", "AC" + "1" * 32, "AC" + "2" * 32
    subaccounts = SignatureChecker("main", PUBLIC, subaccounts={sub: "own", other: "another"})

    def signs(token: str, account: str) -> bool:
        named = ("AccountSid", account)
        signature = sign(PUBLIC + target, [*FIELDS, named], token)
        return subaccounts.check_post(target, INNER_HOST, form(named), signature)

    assert signs("own", sub)
    assert not signs("main", sub)
    assert not signs("another", sub)
    assert not signs("own", "AC" + "3" * 32)
    assert signs("main", "AC" + "3" * 32)
    stream = "wss://ivr.example.test/twilio/media"
    for token, right in (("own", True), ("main", True), ("nobody's", False)):
        signature = sign(stream, token=token)
        assert subaccounts.check_handshake("/twilio/media", INNER_HOST, signature) is right


def test_while_auth_tokens_turn_over_twilio_may_sign_with_either() -> None:
    target = "/twilio/voice"
    both = SignatureChecker("new", PUBLIC, also=[TOKEN, ""])
    one = SignatureChecker("new", PUBLIC, also=[""])
    assert both.check_post(target, INNER_HOST, form(), sign(PUBLIC + target, FIELDS))
    assert not one.check_post(target, INNER_HOST, form(), sign(PUBLIC + target, FIELDS))
    assert SignatureChecker(None, PUBLIC, also=[TOKEN]).check_post(
        target, INNER_HOST, form(), sign(PUBLIC + target, FIELDS)
    )
    assert not SignatureChecker(None, PUBLIC, also=[""]).check_post(target, INNER_HOST, form(), "x")
