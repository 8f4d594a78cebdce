-- commit: everything that one step of a turn writes, or nothing.
-- KEYS after the common ones: those of the opened pause, of each completed pause, of the task, of each answer.
-- ARGV 3 token, 4 release, 5 days in milliseconds that an answer is kept, 6 the same for a pause that is done,
-- 7 number of events, 8 of calls opened, 9 of completions, 10 of task fields, 11 of answers; then these in this order:
--   an event; record, seal, pause id and hashed id of the opened pause, then each call's id and expiry;
--   at and whether it needs no journal, of a completion; task id, expected version, document, state; an answer
local token = ARGV[3]
local events, opened, completions, task, answers = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local key, arg = 14, 12
if not held(token) then return {'lost'} end

-- where each part begins
local first_event = arg
arg = arg + events
local pause, pause_key = arg, key
if opened > 0 then arg = arg + 4 + 2 * opened; key = key + 1 end
local first_done, done_key = arg, key
arg = arg + 2 * completions; key = key + completions
local first_task, task_key = arg, key
if task > 0 then arg = arg + 4; key = key + 1 end
local first_answer, answer_key = arg, key

-- what has to hold
if opened > 0 and (call('EXISTS', KEYS[pause_key]) == 1 or call('HEXISTS', LIVE, ARGV[pause + 3] .. ':record') == 1) then
  return {'reused'}
end
for i = 0, completions - 1 do
  local at, free = ARGV[first_done + 2 * i], ARGV[first_done + 2 * i + 1] == '1'
  if get(at, 'token') ~= token or get(at, 'done') ~= '' then return {'lost'} end
  local word, journal = get(at, 'word'), get(at, 'journal')
  if word == '' or (word == 'approved' and journal ~= 'finished' and not (free and journal == '')) then
    return {'unfinished', at}
  end
end
if task > 0 then
  local version = call('HGET', KEYS[task_key], 'version') or '0'
  if version ~= ARGV[first_task + 1] then return {'conflict', version} end
end

-- and then all of it
for i = 0, events - 1 do call('RPUSH', EVENTS, ARGV[first_event + i]) end
for i = 0, completions - 1 do
  local at, kept = ARGV[first_done + 2 * i], KEYS[done_key + i]
  local name = pause_of(at)
  put(at, 'done', '1')
  call('ZREM', READY, member(at))
  emit('completed', at)
  local count, all = tonumber(get(name, 'count')), true
  for j = 0, count - 1 do all = all and get(name .. ':' .. j, 'done') ~= '' end
  if all then
    -- The pause is over: it moves to its own key. The last one stays here too, to say what became of it.
    local flat, before = call('HGETALL', LIVE), call('HGET', SESSION, 'kept')
    local gone = {}
    for f = 1, #flat, 2 do
      local owner = pause_of(flat[f])
      if owner == name then call('HSET', kept, flat[f], flat[f + 1])
      elseif owner == before then gone[#gone + 1] = flat[f] end
    end
    if #gone > 0 then call('HDEL', LIVE, unpack(gone)) end
    call('PEXPIRE', kept, ARGV[6])
    call('HSET', SESSION, 'kept', name)
    call('ZREM', UNFINISHED, name .. ':' .. SID)
    call('ZADD', ARCHIVE, NOW, name)
    call('ZREMRANGEBYSCORE', ARCHIVE, '-inf', NOW - ARGV[6])
  end
end
if opened > 0 then
  local record, mac, id, name = unpack(ARGV, pause, pause + 3)
  call('HSET', LIVE, name .. ':record', record, name .. ':mac', mac, name .. ':pause', id, name .. ':count', opened,
    name .. ':opened', NOW)
  call('HSET', KEYS[pause_key], 'session', SID)
  call('ZADD', UNFINISHED, NOW, name .. ':' .. SID)
  for i = 0, opened - 1 do
    local at = name .. ':' .. i
    put(at, 'call', ARGV[pause + 4 + 2 * i])
    call('ZADD', OPEN, ARGV[pause + 5 + 2 * i], member(at))
  end
  emit('opened', name .. ':0', 'count', opened)
  hint()
end
if task > 0 then
  local id, expected, document, state = unpack(ARGV, first_task, first_task + 3)
  call('HSET', KEYS[task_key], 'version', expected + 1, 'document', document, 'state', state, 'session', SID)
  if expected == '0' then call('HSET', SESSION, 'task', id) end
end
for i = 0, answers - 1 do call('SET', KEYS[answer_key + i], ARGV[first_answer + i], 'NX', 'PX', ARGV[5]) end
if ARGV[4] == '1' then release(token) end
return {'ok', NOW}
