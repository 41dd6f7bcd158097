"""The whole store as one object. Its statements are in `store_calls`, `store_pages` and `store_threads`."""

from memory.store_calls import WORKER_PREFIX, CallStore
from memory.store_pages import AudioPaths, Hit, PageStore, StoredPage
from memory.store_threads import ThreadRow, ThreadStore
from memory.store_turns import TurnRecord, TurnStore

__all__ = ["WORKER_PREFIX", "AudioPaths", "Hit", "Store", "StoredPage", "ThreadRow", "TurnRecord"]


class Store(CallStore, PageStore, ThreadStore, TurnStore):
    """Calls, pages and threads in one database. Every method is one transaction.

    Every one may raise `StorageUnavailable` (try again) or `StorageFault` (a bug, or not migrated).
    """
