-- settle: a person says what becomes of an unknown outcome. Not before everybody who could still send it has stopped.
-- ARGV 3 at, 4 record's SHA-1, 5 record's seal, 6 verdict's seal, 7 lease and tool time-out, 8 attempt, 9 action,
-- 10 verdict, 11 seal, 12 result, 13 is it an error, 14 note, 15 decision, 16 how long it counts as being answered
local at = ARGV[3]
if get(at, 'call') == '' then return {'gone', NOW} end
if not same(pause_of(at), ARGV[4], ARGV[5]) or get(at, 'vmac') ~= ARGV[6] then return {'changed', NOW} end
if get(at, 'done') ~= '' or get(at, 'journal') ~= 'unknown' or attempt_of(at) ~= ARGV[8] then
  return {'settled', NOW}
end
local from = tonumber(get(at, 'started')) + tonumber(ARGV[7])
if NOW < from then return {'early', NOW, from} end

if ARGV[9] == 'retry' then
  remember(at)
  put(at, 'verdict', ARGV[10]); put(at, 'vmac', ARGV[11])
  put(at, 'attempt', ARGV[8] + 1)
  call('HDEL', LIVE, at .. ':journal', at .. ':start', at .. ':started', at .. ':token')
else
  put(at, 'history', get(at, 'history') .. ARGV[10] .. '\t' .. ARGV[11] .. '\n')
  put(at, 'journal', 'finished'); put(at, 'finished', NOW); put(at, 'result', ARGV[12]); put(at, 'error', ARGV[13])
end
put(at, 'note', ARGV[14])
call('HSET', SESSION, 'last', at)
emit('settled', at, 'action', ARGV[9], 'verdict', ARGV[10])
mark(ARGV[15], ARGV[16])
ready(at)
hint()
return {'ok', NOW}
