-- What every script about a session shares. Put in front of each of them; never run alone.
--
-- Times are milliseconds on this server's clock. A call is named by `at`: its pause's hashed id, ':', its index there.
-- The hash LIVE holds, per pause that is not done (and the last one that is),
--   <pause>:record, mac, pause, count, opened         and per call
--   <at>:call, word, verdict, vmac, journal, token, attempt, started, start, finished, result, error, done, note, history
-- where `token` is the fence of the turn that claimed the call and `start` the one that started it.
local SESSION, LIVE, EVENTS, WAITING, ANSWERING, OPEN, READY, RUNNING, OUTBOX, INBOX, WAKE, UNFINISHED, ARCHIVE =
  unpack(KEYS, 1, 13)
local AGENT, SID = ARGV[1], ARGV[2]
local call = redis.call
local clock = call('TIME')
local NOW = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function pause_of(at) return string.match(at, '^%w+') end
local function member(at) return at .. ':' .. SID end
local function get(at, name) return call('HGET', LIVE, at .. ':' .. name) or '' end
local function put(at, name, value) call('HSET', LIVE, at .. ':' .. name, value) end
local function attempt_of(at) return call('HGET', LIVE, at .. ':attempt') or '1' end

-- The turn is the caller's, and its lease has not ended.
local function held(token)
  local turn = call('HMGET', SESSION, 'token', 'lease')
  return turn[1] == token and tonumber(turn[2] or '0') > NOW
end

-- The pause's record is the one that the caller has seen and whose seal it has checked.
local function same(pause, sha, mac)
  local record = call('HGET', LIVE, pause .. ':record')
  return record and redis.sha1hex(record) == sha and get(pause, 'mac') == mac
end

local function hint() call('XADD', WAKE, 'MAXLEN', '~', 256, '*', 'agent', AGENT) end

local function emit(event, at, ...)
  call('XADD', OUTBOX, 'MAXLEN', '~', 100000, '*', 'event', event, 'at', string.format('%.0f', NOW), 'session', SID,
    'pause', get(pause_of(at), 'pause'), 'call', get(at, 'call'), ...)
end

-- There is something to go on with: now, or, where whoever asked goes on itself, only if it has not by `due`.
local function ready(at, due)
  call('ZADD', READY, due or NOW, member(at))
  if not due then call('XADD', INBOX, 'MAXLEN', '~', 1000, '*', 'session', SID) end
end

-- The one place where a verdict is written.
local function close(at, word, text, mac, due)
  put(at, 'word', word); put(at, 'verdict', text); put(at, 'vmac', mac)
  call('ZREM', OPEN, member(at))
  call('HSET', SESSION, 'last', at)
  emit(word == 'expired' and 'expired' or 'decided', at, 'verdict', text)
  ready(at, due)
end

local function remember(at)
  put(at, 'history', get(at, 'history') .. get(at, 'verdict') .. '\t' .. get(at, 'vmac') .. '\n')
end

-- From now on a decision is being answered, for so long unless its turn is renewed: until then a verdict without ids
-- can only mean what was open before it.
local function mark(decision, milliseconds)
  call('ZREMRANGEBYSCORE', ANSWERING, '-inf', NOW)
  call('ZADD', ANSWERING, NOW + milliseconds, decision)
  call('PEXPIRE', ANSWERING, milliseconds)
end

-- Every call of the session as names: {at, …}, from the whole of LIVE.
local function live_calls()
  local found, flat = {}, call('HGETALL', LIVE)
  for i = 1, #flat, 2 do
    local at = string.match(flat[i], '^(%w+:%d+):call$')
    if at then found[#found + 1] = at end
  end
  return found
end

-- Fences what is decided, not done and not in doubt, for the turn `token`.
local function claim(token)
  local lease = call('HGET', SESSION, 'lease')
  for _, at in ipairs(live_calls()) do
    if get(at, 'word') ~= '' and get(at, 'done') == '' and get(at, 'journal') ~= 'unknown' then
      put(at, 'token', token)
      call('ZADD', READY, lease, member(at))
    end
  end
end

-- Ends a turn. What was decided after this turn's claim is somebody's next work.
local function release(token)
  call('HSET', SESSION, 'lease', '0')
  call('ZREM', RUNNING, SID)
  for _, at in ipairs(live_calls()) do
    if get(at, 'word') ~= '' and get(at, 'done') == '' and get(at, 'journal') ~= 'unknown' and get(at, 'token') ~= token
        and tonumber(call('ZSCORE', READY, member(at)) or NOW) <= NOW then
      ready(at)
    end
  end
end
