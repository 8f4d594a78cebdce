-- begin: may this call be sent now? Only once for each start, and only with the verdict that the caller has checked.
-- ARGV 3 token, 4 at, 5 record's SHA-1, 6 record's seal, 7 verdict's seal, 8 idempotent
local token, at = ARGV[3], ARGV[4]
if not held(token) or get(at, 'token') ~= token or get(at, 'done') ~= '' then return {'lost'} end
if not same(pause_of(at), ARGV[5], ARGV[6]) or get(at, 'word') ~= 'approved' or get(at, 'vmac') ~= ARGV[7] then
  return {'changed'}
end
local journal = get(at, 'journal')
if journal == 'finished' then return {'finished', get(at, 'result'), get(at, 'error')} end
if journal == 'unknown' then return {'unknown'} end
if journal == 'started' and ARGV[8] ~= '1' then
  put(at, 'journal', 'unknown')
  put(at, 'note', 'It was started, and whoever started it stopped before saying how it ended.')
  call('ZREM', READY, member(at))
  emit('unknown', at)
  hint()
  return {'unknown'}
end
put(at, 'journal', 'started'); put(at, 'start', token); put(at, 'started', NOW)
emit('started', at)
return {'run'}
