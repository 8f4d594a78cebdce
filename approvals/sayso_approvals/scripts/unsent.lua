-- unsent: this turn's start certainly reached nobody. The start is taken back and the call is open again, saying why.
-- ARGV 3 token, 4 at, 5 note, 6 expiry
local at = ARGV[4]
if not held(ARGV[3]) or get(at, 'token') ~= ARGV[3] or get(at, 'done') ~= '' then return {'lost'} end
if get(at, 'journal') ~= 'started' or get(at, 'start') ~= ARGV[3] then return {'other'} end
remember(at)
call('HDEL', LIVE, at .. ':word', at .. ':verdict', at .. ':vmac', at .. ':token', at .. ':journal', at .. ':start',
  at .. ':started')
put(at, 'note', ARGV[5])
call('ZADD', OPEN, ARGV[6], member(at))
call('ZREM', READY, member(at))
emit('reopened', at)
hint()
return {'ok', NOW}
