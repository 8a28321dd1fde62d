"""Leases from Redis: the processes that share one Redis count rates, slots and spending together, by the clock of
Redis.

One call runs one script, which takes 15 us of Redis for an entry and 0.5 ms for fifty. Keys contain hashes, no names.
All keys have one hash tag, so a call stays on one node of a cluster. Each key is a hash with one field for each
process. The fields lapse by themselves, so the units of a process that died become free without cleaning up.
`proxy/limits/lease_counter.py` implements the same arithmetic in Python.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from proxy.shared_state.lease import LeaseGrant, LeaseRequest, decode_reply, encode_requests
from proxy.shared_state.running_timeout import reply_within

EXCHANGE_TIMEOUT: Final = 0.05
"""The most seconds for an exchange. Without a reply in this time the process counts alone."""

SCRIPT: Final = """\
local time = redis.call('TIME')
local now = (time[1] - 1767225600) * 1000000 + time[2]
local me = 'p:' .. ARGV[1]
local out = {}
local function text(number) return string.format('%.17g', number) end
local function reply(a, b, c, d, e, f, g, h)
  for _, each in ipairs({a, b, c, d, e, f or 0, g or 0, h or 0}) do out[#out + 1] = text(each) end
end
local function number(word)
  local value = tonumber(word)
  if value and value == value and math.abs(value) <= 1e15 then return value end
end
local function sound(numbers)
  for _, each in ipairs(numbers) do if each ~= each then return false end end
  return true
end
local ended = {}
local told = redis.pcall('SCARD', KEYS[#KEYS])
if type(told) == 'number' and told > 0 and told <= 1000 then
  for _, each in ipairs(redis.call('SMEMBERS', KEYS[#KEYS])) do ended['p:' .. each] = true end
end
local function read(key, longest)
  local size = redis.pcall('HLEN', key)
  if type(size) ~= 'number' and not string.find(size.err or '', 'WRONGTYPE', 1, true) then return nil end
  if type(size) ~= 'number' or size > 4096 then
    redis.call('PEXPIRE', key, 0)
    return nil
  end
  local seen = {sum = 0, count = 1, promised = 0, silent = 0, all = {}, ended = {}}
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local name, value = all[i], all[i + 1]
    if name == 't' or name == 'n' or name == 'e' then
      seen[name] = number(value)
    else
      local told = {}
      for word in string.gmatch(value, '[^,]+') do told[#told + 1] = number(word) or 0 / 0 end
      local it = {amount = told[1], at = told[2], holds = told[3] or longest, life = told[4], total = told[5]}
      it.again, it.part, it.level, it.equal = told[6] or 0, told[7] or 0, told[8] or 0, told[9] or 0
      local age = math.abs(now - (it.at or 0))
      it.claim, it.base = told[10] or 0, told[11] or 0
      local least = math.min(it.claim, it.base)
      if #told < 2 or #told > 11 or least < 0 or not sound(told) or it.amount < 0 or age > longest then
        redis.call('HDEL', key, name)
      elseif ended[name] then
        redis.call('HDEL', key, name)
        seen.ended[#seen.ended + 1] = it
      else
        seen.all[#seen.all + 1] = it
        if name == me then
          seen.own = it
        else
          seen.silent = math.max(seen.silent, age)
          if it.amount > 0 and age <= it.holds then seen.sum, seen.count = seen.sum + it.amount, seen.count + 1 end
          if age <= math.max(it.holds, it.again > 0 and 10000000 or 0) then
            seen.promised = seen.promised + math.max(0, it.part - it.equal)
          end
        end
      end
    end
  end
  return seen
end
local function write(key, seen, ...)
  local words = {...}
  for i = 1, #words do words[i] = text(words[i]) end
  redis.call('HSET', key, 'e', text(seen.e or now), me, table.concat(words, ','))
  if words[1] == '0' and words[10] == '0' and words[11] == '0' then redis.call('HDEL', key, me) end
  redis.call('PEXPIRE', key, 20000)
end
local function turn(own, sum, count)
  if sum > 0 then return math.min(1, 0.9 * own / sum + 0.1 / count) end
  return 1 / count
end
local function alone(it, at, unit)
  local silent = at - it.at
  if it.again <= 0 or silent < it.again or silent > 10000000 then return 0 end
  return it.part * math.max(0, it.level * unit + silent)
end
local function set_aside(seen, t, unit, ahead)
  local written, more, unpaid = math.min(seen.n or now, now), 0, 0
  for _, told in ipairs({seen.all, seen.ended}) do
    for _, it in ipairs(told) do
      local taken = alone(it, now, unit)
      if taken > 0 then
        taken = taken - alone(it, written, unit)
        more, unpaid = more + taken, unpaid + math.min(taken, it.part * ahead)
      end
    end
  end
  if more > 0 then return math.max(math.max(t, written) + more, math.max(t, now) + unpaid) end
  return t
end
local function rate(key, given)
  local rate, burst, want, least, back, demand, holds, life, total, epoch, owed, paid, again, share, equal =
    unpack(given)
  local seen = read(key, 60000000)
  if not seen then return reply(-1, 0, 0, 0, 0) end
  local own, unit = seen.own, 1000000 / rate
  local ahead = burst * unit
  local t = seen.t or now
  if seen.n and seen.n > now then t = t - (seen.n - now) end
  t = set_aside(seen, math.min(t, now + 11 * ahead), unit, ahead)
  back = back * unit
  if own and life ~= 0 and own.life == life and own.total then
    back = (total - own.total) * unit
  elseif epoch ~= 0 and epoch ~= seen.e then
    t = math.max(t, now + owed * unit)
    if seen.e then back = back - math.min(paid * unit, share * math.max(0, math.min(now - seen.e, ahead))) end
  end
  if own and own.at <= now and now - own.at <= 10000000 then
    back = back + alone(own, now, unit) - math.min(paid * unit, own.part * (now - own.at))
  end
  if back < 0 then t = math.max(t, now) end
  t = t - back
  local base = math.max(t, now)
  local exact = (now + ahead - base) / unit
  local left = math.min(burst, math.floor(exact + 2000 / unit + 0.000001))
  local sum = seen.sum + demand
  local granted = math.max(0, math.min(want, left))
  if left < 0.05 * sum then
    local last = own and own.at or now - 20000
    if math.abs(now - last) > 3000000 then last = now - 20000 end
    local since = math.max(0, now - last) / 1000000
    granted = math.min(granted, math.max(1, least, math.ceil(turn(demand, sum, seen.count) * rate * since)))
  end
  if granted < least then granted = 0 end
  if granted > 0 then t = base + granted * unit end
  local by_demand = sum > 0 and demand / sum or 1 / seen.count
  local part = equal + math.max(0, math.min(0.75 * by_demand, 0.75 - seen.promised))
  local mine = {demand, now, holds * 1000000, life, total, again * 1000000}
  mine[7], mine[8], mine[9] = math.max(part, share), left - granted, equal
  for i = 1, #mine do mine[i] = text(mine[i]) end
  redis.call('HSET', key, 't', text(t), 'n', text(now), 'e', text(seen.e or now), me, table.concat(mine, ','))
  redis.call('PEXPIRE', key, math.ceil(math.max(ahead, t - now) / 1000) + 60000)
  reply(granted, exact - granted, math.min(1, part), seen.count, seen.e or now)
end
local function places(key, given)
  local capacity, held, want, used = unpack(given)
  local seen = read(key, 10000000)
  if not seen then return reply(-1, 0, 0, 0, 0) end
  local granted = math.max(0, math.min(want, capacity - seen.sum - held))
  held = held + granted
  write(key, seen, held, now, 10000000, 0, 0, 0, 0, 0, 0, math.max(0, held - used), 0)
  for _, it in ipairs(seen.all) do if it ~= seen.own then used = used + it.amount - it.claim end end
  local share = turn(held, seen.sum + held, seen.count)
  reply(granted, used, share, seen.count, seen.e or now, seen.silent / 1000000)
end
local function spent(key, given)
  local amount, mine, most, held, want, least, reserved = unpack(given)
  local seen = read(key, 10000000)
  if not seen then return reply(-1, 0, 0, 0, 0) end
  local base, claimed, own, flying = mine, 0, 0, 0
  for _, it in ipairs(seen.all) do if it ~= seen.own then base = math.max(base, it.base) end end
  local twice = math.min(amount - reserved, base - mine)
  local doubtful = twice
  for _, it in ipairs(seen.all) do
    if it ~= seen.own then
      local its = math.max(0, math.min(it.total or 0, it.amount))
      local both = math.min(it.amount, base - it.base)
      local settled = math.min(it.amount - its, both)
      flying, doubtful = flying + its - (both - settled), doubtful + settled
      claimed, own = claimed + it.claim, own + it.amount
      if math.abs(now - it.at) < 3000000 then twice = twice + both else own = own - both end
    end
  end
  local granted = math.max(0, math.min(want, most - base - amount - own - claimed - held))
  if granted < least then granted = 0 end
  local claim = held + granted
  write(key, seen, amount, now, 10000000, 0, reserved, 0, 0, 0, 0, claim, mine)
  reply(granted, base - mine + own - twice, 1, seen.count, seen.e or now, claimed + twice, flying, doubtful)
end
local kinds = {r = rate, c = places, s = spent}
for i = 1, #KEYS - 1 do
  local at = 2 + (i - 1) * 16
  local given = {}
  for j = 1, 15 do given[j] = tonumber(ARGV[at + j]) end
  kinds[ARGV[at]](KEYS[i], given)
end
return out
"""
"""The script that counts. Times are microseconds since the beginning of 2026, which a Lua number stores to a fraction
of a microsecond.

- `t` is the time at which all granted units are paid for, and `n` is the time at which `t` was written. If the clock of
  Redis steps back, `t` and `n` step back too. `e` is the time at which the key was made: it differs after the key was
  lost.
- A process's field of a rate also contains the time until which its demand is valid, and all units returned in its
  lease's life, so that repeated reports count once. For processes that count alone, the field contains the silence, the
  part, and the units left.
- A field of spending contains the claim, the part of the spending that requests in flight reserve, and the ledger's sum
  that the process has read. A field of slots contains the slots that no request uses.
- The last key names the processes that were seen to end. Their units are free at once.
- A key with foreign data is reported and removed at once, so that the next call counts anew. The script removes the key
  with PEXPIRE, a command that the Redis user must be allowed in any case.
"""

ENDED: Final = """\
redis.call('SADD', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], 20000)
"""
"""The script that stores the name of a process that has ended, for as long as its fields would be valid."""

SHA: Final = hashlib.sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()
_ENDED_SHA: Final = hashlib.sha1(ENDED.encode(), usedforsecurity=False).hexdigest()
"""The SHA-1 digests by which Redis identifies the scripts."""


@dataclass(frozen=True, slots=True)
class RedisLeases:
    """A source of leases that counts in Redis. `run_script` runs a script by its SHA-1, or sends its text if Redis does
    not know it. It raises ConnectionError if there is no reply. `process` is the name of this process, unique among all
    processes."""

    run_script: Callable[[str, str, Sequence[str], Sequence[str]], Awaitable[object]]
    prefix: str
    process: str

    async def exchange(self, requests: Sequence[LeaseRequest]) -> Sequence[LeaseGrant | None]:
        """Exchange entries within EXCHANGE_TIMEOUT."""
        keys = [*(self._key(_hashed(request.key)) for request in requests), self._key("ended")]
        return decode_reply(await self._run(SHA, SCRIPT, keys, [self.process, *encode_requests(requests)]), requests)

    async def release_ended(self, process: str) -> None:
        """Free the units of a process that has ended. Raises ConnectionError if there is no reply. The units lapse by
        themselves within ten seconds in that case."""
        await self._run(_ENDED_SHA, ENDED, [self._key("ended")], [process])

    async def _run(self, sha: str, script: str, keys: Sequence[str], words: Sequence[str]) -> object:
        try:
            return await reply_within(EXCHANGE_TIMEOUT, self.run_script(sha, script, keys, words))
        except TimeoutError:
            raise ConnectionError("no reply in time") from None

    def _key(self, name: str) -> str:
        return f"{{{self.prefix}}}:lim:3:{name}"


@lru_cache(maxsize=65_536)
def _hashed(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:32]
