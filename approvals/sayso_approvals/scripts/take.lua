-- take: the session's turn, or a place in its queue; with the claim folded in where asked for.
-- KEYS after the common ones: that of the message's answer, and of a task, to read or to begin; where it begins,
-- ARGV 11 id, 12 document, 13 state. A task begins only where nothing waits in the session, and the message is new.
-- ARGV 3 requester, 4 any requester, 5 create, 6 lease, 7 place in the queue, 8 how long a place holds, 9 places, 10 claim
local requester, lease, place = ARGV[3], tonumber(ARGV[6]), ARGV[7]
local known = call('HMGET', SESSION, 'requester', 'lease', 'task')
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

local answer, idle = call('GET', KEYS[14]) or '', true
for _, at in ipairs(live_calls()) do idle = idle and get(at, 'done') ~= '' end
if ARGV[11] ~= '' and idle and answer == '' and call('EXISTS', KEYS[15]) == 0 then
  call('HSET', KEYS[15], 'version', 1, 'document', ARGV[12], 'state', ARGV[13], 'session', SID)
  call('HSET', SESSION, 'task', ARGV[11])
end
return {'taken', token, NOW, ends > 0 and 1 or 0, owner, call('LLEN', EVENTS), call('HGETALL', LIVE), answer,
  call('HMGET', KEYS[15], 'version', 'document'), known[3] or ''}
