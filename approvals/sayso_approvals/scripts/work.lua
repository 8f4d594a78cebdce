-- work: sessions with something to go on with that nobody holds, and those whose holder died. KEYS ready, running; ARGV limit
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local found, seen = {}, {}
local function add(session)
  if not seen[session] then
    seen[session] = true
    found[#found + 1] = session
  end
end
for _, session in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, ARGV[1])) do add(session) end
for _, one in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])) do
  local session = string.match(one, '^%w+:%d+:(.*)$')
  local lease = session and redis.call('ZSCORE', KEYS[2], session)
  if session and (not lease or tonumber(lease) <= now) then add(session) end
end
return found
