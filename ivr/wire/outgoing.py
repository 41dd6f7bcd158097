"""How our own requests to a business's systems are signed, so that they can tell them from anybody else's."""

import hashlib
import hmac

SIGNATURE_HEADER = "Callthread-Signature"
KEY_HEADER = "Idempotency-Key"


def signature(secret: str, at_s: int, key: str, method: str, url: str, body: bytes) -> str:
    """The header's value: `t=<Unix time>,v1=<hex>`, HMAC-SHA256 over `<t>.<key>.<method>.<url>.<body>`."""
    signed = f"{at_s}.{key}.{method}.{url}.".encode() + body
    return f"t={at_s},v1={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"
