-- reopen: a verdict that was not consumed counts for nothing: the call is open again, and says why.
-- ARGV 3 token, 4 at, 5 note, 6 expiry
local at = ARGV[4]
if not held(ARGV[3]) or get(at, 'token') ~= ARGV[3] or get(at, 'done') ~= '' then return {'lost'} end
if get(at, 'journal') ~= '' then return {'started'} end
remember(at)
call('HDEL', LIVE, at .. ':word', at .. ':verdict', at .. ':vmac', at .. ':token')
put(at, 'note', ARGV[5])
call('ZADD', OPEN, ARGV[6], member(at))
call('ZREM', READY, member(at))
emit('reopened', at)
hint()
return {'ok', NOW}
