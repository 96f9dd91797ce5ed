"""Lists that come in pages, as iterators over all rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Protocol, TypeVar

from .rest.types import UNSET

PAGE = 200
"""Rows per request: the most that the server gives."""

VALUES = 5000
"""The same for values of time series, which are small."""

Row = TypeVar("Row")


class Page(Protocol[Row]):
    """A page of any list."""

    @property
    def data(self) -> list[Row]: ...

    @property
    def next_(self) -> Any: ...


Fetch = Callable[[Any, int], Page[Row]]
"""The page after a cursor, of so many rows."""

AsyncFetch = Callable[[Any, int], Awaitable[Page[Row]]]


def rows(
    fetch: Fetch[Row], limit: int | None, start: Any = UNSET, most: int = PAGE
) -> Iterator[Row]:
    """All rows, or the first `limit`; each page of at most `most` is asked for when it is needed."""
    cursor, left = start, limit
    while left is None or left > 0:
        page = fetch(cursor, most if left is None else min(most, left))
        yield from page.data
        if page.next_ is None:
            return
        cursor, left = page.next_, None if left is None else left - len(page.data)


async def rows_async(
    fetch: AsyncFetch[Row], limit: int | None, start: Any = UNSET, most: int = PAGE
) -> AsyncIterator[Row]:
    """The same, asynchronously."""
    cursor, left = start, limit
    while left is None or left > 0:
        page = await fetch(cursor, most if left is None else min(most, left))
        for row in page.data:
            yield row
        if page.next_ is None:
            return
        cursor, left = page.next_, None if left is None else left - len(page.data)
