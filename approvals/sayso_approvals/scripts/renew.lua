-- renew: a longer lease, only while the turn is still the caller's. ARGV 3 token, 4 lease
if not held(ARGV[3]) then return {'lost'} end
call('HSET', SESSION, 'lease', NOW + ARGV[4])
call('ZADD', RUNNING, NOW + ARGV[4], SID)
for _, decision in ipairs(call('ZRANGEBYSCORE', ANSWERING, '(' .. NOW, '+inf')) do
  call('ZADD', ANSWERING, 'XX', NOW + 4 * ARGV[4], decision)
  call('PEXPIRE', ANSWERING, 4 * ARGV[4])
end
return {'ok', NOW}
