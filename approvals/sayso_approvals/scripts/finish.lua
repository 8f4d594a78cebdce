-- finish: a result is a fact, even when the lease is gone, as long as that start still counts.
-- ARGV 3 token, 4 at, 5 result, 6 is it an error
local at = ARGV[4]
local journal = get(at, 'journal')
if (journal ~= 'started' and journal ~= 'unknown') or get(at, 'start') ~= ARGV[3] then return {'late'} end
put(at, 'journal', 'finished'); put(at, 'finished', NOW); put(at, 'result', ARGV[5]); put(at, 'error', ARGV[6])
emit('finished', at, 'error', ARGV[6])
if journal == 'unknown' then
  put(at, 'note', '')
  ready(at)
  hint()
end
return {'ok', NOW}
