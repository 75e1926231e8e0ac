"""A store in Redis (7 or newer) or Valkey.

The rules: every change is one script, of commands that both have. All keys of a store are in one hash slot.
A lease is a key that expires by itself. Nothing is tried twice: whoever asked decides.

    {NAMESPACE}:number     the last version or number
    {NAMESPACE}:v:TABLE    a hash: the data of each value, by name
    {NAMESPACE}:n:TABLE    a hash: the version of each value, by name
    {NAMESPACE}:l:NAME     OWNER:NUMBER, until the lease ends
    {NAMESPACE}:b:NAME     when a token bucket is full, in microseconds; until then
    {NAMESPACE}:e:LOG      a sorted set: NUMBER:DATA, by number
    {NAMESPACE}:c:CHANNEL  a channel
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from typing import Any, cast

import redis.asyncio
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from mcpzip.model.errors import StoreFault
from mcpzip.model.quoting import shortened
from mcpzip.store.buckets import Bucket, Shortage
from mcpzip.store.records import Entry, Key, StoreFullError, Value

_CONNECTIONS = 8
_PAUSE = 30.0
"""Seconds after which a subscription looks whether its connection still is one."""

_NEXT = """
local function following(key)
  local time = redis.call('TIME')
  local last = tonumber(redis.call('GET', key) or '0')
  local number = string.format('%.0f', math.max(last + 1, time[1] * 1000000 + time[2]))
  redis.call('SET', key, number)
  return number
end
"""
"""Microseconds of the store's clock: a number above all earlier ones, also where the last were lost."""
_GET = "return {redis.call('HGET', KEYS[1], ARGV[1]), redis.call('HGET', KEYS[2], ARGV[1])}"
_SET = (
    _NEXT
    + """
local before = redis.call('HGET', KEYS[2], ARGV[1])
if (before or '0') ~= ARGV[3] then return false end
if not before and redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[4]) then return 'full' end
local number = following(KEYS[3])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[1], number)
return number
"""
)
_DELETE = """
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
return 1
"""
_ACQUIRE = (
    _NEXT
    + """
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
local number = following(KEYS[2])
redis.call('SET', KEYS[1], ARGV[1] .. ':' .. number, 'NX', 'PX', ARGV[2])
return number
"""
)
_RENEW = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
_RELEASE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
return 1
"""
_TAKE = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function set(key, microseconds)
  redis.call('SET', key, string.format('%.0f', now + microseconds), 'PX', math.ceil(microseconds / 1000))
end
local function take(first, last)
  local taken, short, longest = {}, 0, 0
  for i = first, last do
    local most, interval = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
    taken[i] = math.max(tonumber(redis.call('GET', KEYS[i]) or now) - now, 0)
    if taken[i] > most * interval then
      taken[i] = most * interval
      set(KEYS[i], taken[i])
    end
    local wait = taken[i] - (most - 1) * interval
    if wait > longest then short, longest = i - first + 1, wait end
  end
  if short > 0 then return short, longest end
  for i = first, last do set(KEYS[i], taken[i] + tonumber(ARGV[2 * i])) end
  return 0, 0
end
local found, first = {}, 1
for request = 2 * #KEYS + 1, #ARGV do
  local last = first + tonumber(ARGV[request]) - 1
  found[#found + 1], found[#found + 2] = take(first, last)
  first = last + 1
end
return found
"""
"""See `mcpzip.store.buckets.take`."""
_APPEND = (
    _NEXT
    + """
local number = following(KEYS[2])
redis.call('ZADD', KEYS[1], number, number .. ':' .. ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[2]))
return number
"""
)
_ENTRIES = "return redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], '+inf', 'LIMIT', 0, ARGV[2])"
_VERSIONS = "return redis.call('HGETALL', KEYS[1])"


class RedisBackend:
    """The keys of ``namespace`` at ``url``. place: that URL without a password."""

    def __init__(self, url: str, namespace: str, place: str, deadline: float) -> None:
        """deadline: seconds to connect, and for each answer. Raises ValueError for a URL of another kind."""
        self.place, self._prefix = place, f"{{{namespace}}}"
        pool = redis.asyncio.BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=deadline,
            socket_timeout=deadline,
            socket_connect_timeout=deadline,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
            decode_responses=False,
        )
        self._client = redis.asyncio.Redis.from_pool(pool)

    async def get(self, key: Key) -> Value | None:
        data, version = await self._run(_GET, self._of(key), (key.name,))
        return None if version is None else Value(data, int(version))

    async def versions(self, table: str, most: int) -> Mapping[str, int]:
        found = await self._run(_VERSIONS, (f"{self._prefix}:n:{table}",), ())
        pairs = zip(found[: 2 * most : 2], found[1 : 2 * most : 2], strict=True)
        return {name.decode(): int(version) for name, version in pairs}

    async def compare_and_set(self, key: Key, data: bytes, version: int, most: int) -> int | None:
        found = await self._run(_SET, (*self._of(key), self._number), (key.name, data, version, most))
        if found == b"full":
            raise StoreFullError
        return None if found is None else int(found)

    async def delete(self, key: Key, version: int) -> bool:
        return bool(await self._run(_DELETE, self._of(key), (key.name, version)))

    async def acquire(self, name: str, owner: str, milliseconds: int) -> int | None:
        found = await self._run(_ACQUIRE, (f"{self._prefix}:l:{name}", self._number), (owner, milliseconds))
        return None if found is None else int(found)

    async def renew(self, name: str, owner: str, number: int, milliseconds: int) -> bool:
        holder = f"{owner}:{number}"
        return bool(await self._run(_RENEW, (f"{self._prefix}:l:{name}",), (holder, milliseconds)))

    async def release(self, name: str, owner: str, number: int) -> bool:
        return bool(await self._run(_RELEASE, (f"{self._prefix}:l:{name}",), (f"{owner}:{number}",)))

    async def take(self, requests: Sequence[Sequence[Bucket]]) -> list[Shortage | None]:
        every = tuple(chain.from_iterable(requests))
        keys = tuple(f"{self._prefix}:b:{bucket.name}" for bucket in every)
        numbers = tuple(number for bucket in every for number in (bucket.most, bucket.interval))
        found = await self._run(_TAKE, keys, (*numbers, *map(len, requests)))
        pairs = zip(found[::2], found[1::2], strict=True)
        return [Shortage(number - 1, wait) if number else None for number, wait in pairs]

    async def append(self, log: str, data: bytes, keep: int) -> int:
        return int(await self._run(_APPEND, (f"{self._prefix}:e:{log}", self._number), (data, keep)))

    async def entries(self, log: str, after: int, most: int) -> list[Entry]:
        found = await self._run(_ENTRIES, (f"{self._prefix}:e:{log}",), (after, most))
        parts = (each.partition(b":") for each in found)
        return [Entry(int(number), data) for number, _, data in parts]

    async def publish(self, channel: str, message: bytes) -> None:
        await self._client.publish(f"{self._prefix}:c:{channel}", message)

    @asynccontextmanager
    async def subscribe(self, channel: str) -> AsyncIterator[AsyncIterator[bytes]]:
        subscription = self._client.pubsub(ignore_subscribe_messages=True)
        try:
            await subscription.subscribe(f"{self._prefix}:c:{channel}")
            await subscription.get_message(ignore_subscribe_messages=False, timeout=None)  # it has begun
            yield _messages(subscription)
        finally:
            await subscription.aclose()  # type: ignore[no-untyped-call]

    def fault(self, error: Exception) -> tuple[StoreFault, str] | None:
        said = shortened(str(error))
        match error:
            case exceptions.ReadOnlyError():
                return "read-only", "it is read-only (READONLY)"
            case exceptions.OutOfMemoryError():
                return "full", "its memory is full (OOM)"
            case exceptions.AuthenticationError() | exceptions.NoPermissionError():
                return "refused", f"it refuses us ({said})"
            case exceptions.ResponseError() if said.startswith("The user executing the script"):
                return "refused", f"its user lacks a right ({said})"
            case exceptions.MovedError() | exceptions.ClusterCrossSlotError():
                return "refused", "it is a node of a cluster, which isn't supported"
            case exceptions.TimeoutError():
                return "slow", "it does not answer"
            case exceptions.ResponseError() if said.startswith("MISCONF"):
                return "read-only", "it can't write to its disk (MISCONF)"
            case exceptions.RedisError() | OSError():
                return "away", f"it can't be used ({said or type(error).__name__})"
        return None

    async def close(self) -> None:
        await self._client.aclose()

    @property
    def _number(self) -> str:
        return f"{self._prefix}:number"

    def _of(self, key: Key) -> tuple[str, str]:
        return f"{self._prefix}:v:{key.table}", f"{self._prefix}:n:{key.table}"

    async def _run(self, script: str, keys: tuple[str, ...], arguments: tuple[str | bytes | int, ...]) -> Any:
        answer = self._client.eval(script, len(keys), *keys, *cast(tuple[str, ...], arguments))
        return await answer


async def _messages(subscription: Any) -> AsyncIterator[bytes]:
    while True:
        message = await subscription.get_message(timeout=_PAUSE)
        if message is not None:
            yield message["data"]
