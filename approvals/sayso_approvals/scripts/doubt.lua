-- doubt: it was sent, and nobody can know how it ended. ARGV 3 token, 4 at, 5 note
local at = ARGV[4]
if not held(ARGV[3]) or get(at, 'token') ~= ARGV[3] then return {'lost'} end
if get(at, 'journal') == 'started' and get(at, 'start') == ARGV[3] then
  put(at, 'journal', 'unknown'); put(at, 'note', ARGV[5])
  call('ZREM', READY, member(at))
  emit('unknown', at)
  hint()
end
return {'ok', NOW}
