-- renew: a longer lease, only while the turn is still the caller's. ARGV 3 token, 4 lease
if not held(ARGV[3]) then return {'lost'} end
call('HSET', SESSION, 'lease', NOW + ARGV[4])
call('ZADD', RUNNING, NOW + ARGV[4], SID)
return {'ok', NOW}
