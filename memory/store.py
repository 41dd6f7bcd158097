"""The whole store as one object. Its statements are in the `store_*` modules."""

from memory.scan import CallerScan
from memory.store_callers import CallerStore
from memory.store_calls import CallStore
from memory.store_costs import CostStore
from memory.store_erasure import ErasureStore
from memory.store_facts import FactStore
from memory.store_leases import WORKER_PREFIX, LeaseStore
from memory.store_notices import HoursOverride, Notice, NoticeStore
from memory.store_orders import OrderRow, OrderStore
from memory.store_pages import AudioPaths, PageStore, PageVectors, StoredPage
from memory.store_search import SearchStore
from memory.store_strip import StripStore
from memory.store_threads import ThreadRow, ThreadStore
from memory.store_turns import TurnRecord, TurnStore
from memory.store_voicemail import Voicemail, VoicemailStore

__all__ = [
    "WORKER_PREFIX",
    "AudioPaths",
    "CallerScan",
    "HoursOverride",
    "Notice",
    "OrderRow",
    "PageVectors",
    "Store",
    "StoredPage",
    "ThreadRow",
    "TurnRecord",
    "Voicemail",
]


class Store(
    CallerStore,
    CallStore,
    CostStore,
    ErasureStore,
    FactStore,
    LeaseStore,
    NoticeStore,
    OrderStore,
    PageStore,
    SearchStore,
    StripStore,
    ThreadStore,
    TurnStore,
    VoicemailStore,
):
    """Calls, pages, threads, business facts and notices in one database. Every method is one transaction.

    Every one may raise `StorageUnavailable` (try again) or `StorageFault` (a bug, or not migrated).
    """
