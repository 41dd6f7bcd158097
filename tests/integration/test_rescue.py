"""The second way back for a call whose stream broke, on a real database and a telephony port that notes."""

import pytest

from ivr import rescue as rescuing
from ivr.errors import TelephonyError
from ivr.rescue import Rescue
from ivr.secondway import SecondWay
from memory.calls import CallStatus
from memory.store import Store

PUBLIC = "https://ivr.example.test"


class NotedTelephony:
    """`ports.Telephony` that notes what it was told."""

    def __init__(self, *, broken: bool = False) -> None:
        self.updates: list[tuple[str, str]] = []
        self.hung_up: list[str] = []
        self.over: set[str] = set()
        self._broken = broken

    async def hang_up(self, call_sid: str) -> None:
        self.hung_up.append(call_sid)

    async def is_over(self, call_sid: str) -> bool:
        if self._broken:
            raise TelephonyError("no account")
        return call_sid in self.over

    async def update(self, call_sid: str, twiml: str) -> None:
        if self._broken:
            raise TelephonyError("no account")
        self.updates.append((call_sid, twiml))


async def broken_call(store: Store, call_sid: str) -> None:
    await store.open_call(call_sid, "shop", "+12025550143", "+16175550140", "hash")
    await store.claim_stream(call_sid, "MZ1")


async def settled(rescue: Rescue) -> None:
    for task in list(rescue._waiting.values()):
        await task


async def test_a_call_that_nobody_brought_back_is_redirected_once(store: Store) -> None:
    await broken_call(store, "CA1")
    telephony = NotedTelephony()
    rescue = Rescue(store, SecondWay(telephony, PUBLIC), lambda _: False, wait_s=0)
    rescue.stream_broke("CA1")
    rescue.stream_broke("CA1")
    await settled(rescue)
    ((call_sid, twiml),) = telephony.updates
    assert call_sid == "CA1"
    assert f'<Redirect method="POST">{PUBLIC}/twilio/continue?n=1</Redirect>' in twiml


async def test_b063_a_call_whose_stream_runs_again_is_left_alone(store: Store) -> None:
    await broken_call(store, "CA1")
    telephony = NotedTelephony()
    rescue = Rescue(store, SecondWay(telephony, PUBLIC), lambda _: True, wait_s=0)
    rescue.stream_broke("CA1")
    await settled(rescue)
    assert telephony.updates == []


async def test_a_call_that_is_over_or_unknown_is_left_alone(store: Store) -> None:
    await broken_call(store, "CA1")
    await store.end_call("CA1", CallStatus.FINISHED)
    telephony = NotedTelephony()
    rescue = Rescue(store, SecondWay(telephony, PUBLIC), lambda _: False, wait_s=0)
    rescue.stream_broke("CA1")
    rescue.stream_broke("CA2")
    await settled(rescue)
    assert telephony.updates == []


async def test_a_call_that_came_back_is_left_alone(store: Store) -> None:
    await broken_call(store, "CA1")
    telephony = NotedTelephony()
    rescue = Rescue(store, SecondWay(telephony, PUBLIC), lambda _: False, wait_s=60)
    rescue.stream_broke("CA1")
    rescue.came_back("CA1")
    await rescue.close()
    assert telephony.updates == []


async def test_without_a_public_address_or_an_account_there_is_no_second_way(store: Store) -> None:
    await broken_call(store, "CA1")
    rescue = Rescue(store, SecondWay(NotedTelephony(), None), lambda _: False, wait_s=0)
    rescue.stream_broke("CA1")
    assert rescue._waiting == {}
    broken = Rescue(store, SecondWay(NotedTelephony(broken=True), PUBLIC), lambda _: False, wait_s=0)
    broken.stream_broke("CA1")
    await settled(broken)  # logged, and no exception is left behind


async def test_a_call_that_is_finished_and_never_asked_what_is_next_is_hung_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescuing, "END_WAIT_S", 0)
    await broken_call(store, "CA1")
    await store.end_call("CA1", CallStatus.FINISHED)
    await broken_call(store, "CA2")  # that end was of an older stream: the call goes on elsewhere
    telephony = NotedTelephony()
    rescue = Rescue(store, SecondWay(telephony, PUBLIC), lambda _: False)
    rescue.finished("CA1")
    rescue.finished("CA2")
    await settled(rescue)
    assert telephony.hung_up == ["CA1"]
    monkeypatch.setattr(rescuing, "END_WAIT_S", 60)
    rescue.finished("CA1")
    rescue.came_back("CA1")  # Twilio asked: the answer was a hang-up
    await rescue.close()
    assert telephony.hung_up == ["CA1"]
