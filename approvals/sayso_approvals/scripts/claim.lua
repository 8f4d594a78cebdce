-- claim: fences what can be gone on with, under this turn's token. ARGV 3 token
if not held(ARGV[3]) then return {'lost'} end
claim(ARGV[3])
return {'ok', NOW, call('HGETALL', LIVE)}
