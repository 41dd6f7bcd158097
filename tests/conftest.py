"""Fixtures for every kind of test."""

from tests.pg import (  # noqa: F401 - pytest finds fixtures by name here
    cluster,
    cluster_url,
    database_url,
    empty_database_url,
    service_url,
    store,
    template_database,
)
