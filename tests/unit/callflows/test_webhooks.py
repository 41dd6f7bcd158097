"""Webhooks in a flow file."""

from pathlib import Path

import pytest

from callflows.check import check_paths
from callflows.parse import parse_text
from tests.unit.callflows.examples import CLINIC

HOOKS = """\
allow_hosts: [crm.example.com]
webhooks:
  - {url: "https://crm.example.com/calls", secret: "${CRM_SECRET}"}
  - {url: https://crm.example.com/voice, secret: "${CRM_SECRET}", events: [voicemail]}
"""


def test_who_is_told_of_what() -> None:
    business = parse_text(CLINIC + HOOKS, "f.yaml")
    assert [hook.url for hook in business.tells("call_ended")] == ["https://crm.example.com/calls"]
    assert len(business.tells("voicemail")) == 2
    assert business.env() == ["CRM_SECRET", "CRM_SECRET"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "https://crm.example.com/calls",
            "https://evil.example.org/",
            "`evil.example.org` is not among allow_hosts",
        ),
        ("https://crm.example.com/calls", "http://crm.example.com/", "must begin with https://"),
        ("https://crm.example.com/calls", "https://crm.example.com/{day}", "no slot may stand here"),
        ('${CRM_SECRET}"}\n', 'hush"}\n', "a secret is the name of an environment variable"),
        ("[voicemail]", "[everything]", "is not one of the words allowed here"),
    ],
)
def test_faults(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in HOOKS
    (tmp_path / "f.yaml").write_text(CLINIC + HOOKS.replace(old, new, 1))
    assert told in [fault.message for fault in check_paths(tmp_path)]
