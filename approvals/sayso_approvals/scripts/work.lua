-- work: sessions with something to go on with that nobody holds, and those whose holder died; a page of each index.
-- KEYS ready, running; ARGV limit, offset. The reply: is there more, members that no script of ours wrote (they are
-- gone now), and for each find its session and the member of READY that says so ('' for one of RUNNING).
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local running = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', ARGV[2], ARGV[1])
local ready = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', ARGV[2], ARGV[1])
local alien, found = {}, {}
for _, session in ipairs(running) do
  found[#found + 1] = session; found[#found + 1] = ''
end
for _, one in ipairs(ready) do
  local session = string.match(one, '^%w+:%d+:(.+)$')
  if not session then
    redis.call('ZREM', KEYS[1], one)
    alien[#alien + 1] = one
  else
    local lease = redis.call('ZSCORE', KEYS[2], session)
    if not lease or tonumber(lease) <= now then
      found[#found + 1] = session; found[#found + 1] = one
    end
  end
end
local more = math.max(#running, #ready) >= tonumber(ARGV[1])
return {more and 1 or 0, alien, found}
