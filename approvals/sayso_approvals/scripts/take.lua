-- take: the session's turn, or a place in its queue; with the claim folded in where asked for.
-- ARGV 3 requester, 4 any requester, 5 create, 6 lease, 7 place in the queue, 8 how long a place holds, 9 places, 10 claim
local requester, lease, place = ARGV[3], tonumber(ARGV[6]), ARGV[7]
local known = call('HMGET', SESSION, 'requester', 'lease')
local owner = known[1]
if not owner then
  if ARGV[5] == '0' then return {'unknown'} end
elseif ARGV[4] == '0' and owner ~= requester then
  return {'unknown'}
end

call('ZREMRANGEBYSCORE', WAITING, '-inf', NOW)
local queue = call('ZRANGE', WAITING, 0, -1)
local first = nil
local waiting = false
for _, other in ipairs(queue) do
  if not first or other < first then first = other end
  if other == place then waiting = true end
end
local ends = tonumber(known[2] or '0')
if ends > NOW or (first and first ~= place) then
  if not waiting then
    if #queue >= tonumber(ARGV[9]) then return {'busy'} end
    if place == '' then place = string.format('%012d', call('HINCRBY', SESSION, 'arrivals', 1)) end
  end
  call('ZADD', WAITING, NOW + ARGV[8], place)
  return {'wait', place}
end

if waiting then call('ZREM', WAITING, place) end
local token = call('HINCRBY', SESSION, 'token', 1)
if owner then
  call('HSET', SESSION, 'lease', NOW + lease)
else
  owner = requester
  call('HSET', SESSION, 'id', SID, 'requester', owner, 'lease', NOW + lease)
end
call('ZADD', RUNNING, NOW + lease, SID)
if ARGV[10] == '1' then claim(tostring(token)) end
return {'taken', token, NOW, ends > 0 and 1 or 0, owner, call('LLEN', EVENTS), call('HGETALL', LIVE)}
