"""The queue's connections to PostgreSQL, which come back soon after the database does."""

import asyncio
from typing import Any, Self

import psycopg
from psycopg_pool import AsyncConnectionPool


class Connection(psycopg.AsyncConnection[Any]):
    """One that is not made for a task that is to end.

    A worker that ends cancels the task that listens for jobs. Where the database cuts that task's
    connection at the same moment, it sees the cut alone, and would listen anew for seconds.
    """

    @classmethod
    async def connect(cls, *arguments: Any, **settings: Any) -> Self:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        return await super().connect(*arguments, **settings)


def pool_of(**settings: Any) -> AsyncConnectionPool[psycopg.AsyncConnection[Any]]:
    """Connections, all of them looked at once one is found broken: what cuts one cuts all, and a
    pool that finds out one by one waits longer each time."""

    async def check(connection: psycopg.AsyncConnection[Any]) -> None:
        try:
            await pool.check_connection(connection)
        except psycopg.Error:
            await pool.check()
            raise

    pool = AsyncConnectionPool(**settings | {"check": check})
    return pool


async def each_statement_alone(connection: psycopg.AsyncConnection[Any]) -> None:
    """All that procrastinate asks is one statement, which needs no transaction around it."""
    await connection.set_autocommit(True)
