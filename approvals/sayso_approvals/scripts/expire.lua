-- expire: nobody decided in time.
-- ARGV from 3 for each call 8: at, forced, record's SHA-1, record's seal, expiry, verdict, seal, attempt.
-- Forced: the record is not the agent's own, so its expiry is the one in the index and the call is cancelled.
local expired = 0
for i = 3, #ARGV, 8 do
  local at, forced = ARGV[i], ARGV[i + 1] == '1'
  if get(at, 'call') == '' or get(at, 'done') ~= '' or (get(at, 'word') ~= '' and not forced) then
    call('ZREM', OPEN, member(at))
  elseif (forced or (same(pause_of(at), ARGV[i + 2], ARGV[i + 3]) and attempt_of(at) == ARGV[i + 7]))
      and NOW >= tonumber(ARGV[i + 4]) then
    close(at, forced and 'cancelled' or 'expired', ARGV[i + 5], ARGV[i + 6])
    expired = expired + 1
  elseif not forced and same(pause_of(at), ARGV[i + 2], ARGV[i + 3]) and NOW < tonumber(ARGV[i + 4]) then
    call('ZADD', OPEN, ARGV[i + 4], member(at))  -- the index was wrong: the record says when
  end
end
if expired > 0 then hint() end
return {expired, NOW}
