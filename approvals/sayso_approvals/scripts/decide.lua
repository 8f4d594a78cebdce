-- decide: all verdicts or none. A call past its time expires here and now, and is refused.
-- ARGV 3 decision, 4 how long it counts as being answered, 5 head start of the caller ('' when others shall go on),
-- then for each call 12: at, forced, record's SHA-1, record's seal, verdict's seal as seen, expiry, word, verdict, seal,
-- the verdict and seal for an expiry, attempt. Forced: nothing in the record can be believed, the call is only ever
-- cancelled, and however far it came, that is its end.
local STRIDE = 12
local refused, overdue, stale = {}, {}, false
local function refuse(at) refused[#refused + 1] = at end

for i = 6, #ARGV, STRIDE do
  local at = ARGV[i]
  if get(at, 'call') == '' then refuse(at)
  elseif get(at, 'done') ~= '' then refuse(at)
  elseif ARGV[i + 1] == '1' then
    if get(at, 'vmac') ~= ARGV[i + 4] then refuse(at) end
  elseif not same(pause_of(at), ARGV[i + 2], ARGV[i + 3]) then refuse(at)
  elseif get(at, 'word') ~= '' or get(at, 'verdict') ~= '' then refuse(at)
  elseif attempt_of(at) ~= ARGV[i + 11] then stale = true
  elseif NOW >= tonumber(ARGV[i + 5]) then overdue[#overdue + 1] = i
  end
end
if stale then return {'stale', NOW} end
for _, i in ipairs(overdue) do
  close(ARGV[i], 'expired', ARGV[i + 9], ARGV[i + 10])
  hint()
  refuse(ARGV[i])
end
if #refused > 0 then return {'refused', NOW, refused} end

local due = ARGV[5] ~= '' and NOW + ARGV[5] or nil
for i = 6, #ARGV, STRIDE do
  if get(ARGV[i], 'verdict') ~= '' then remember(ARGV[i]) end
  if ARGV[i + 1] == '1' and get(ARGV[i], 'journal') ~= 'finished' then call('HDEL', LIVE, ARGV[i] .. ':journal') end
  close(ARGV[i], ARGV[i + 6], ARGV[i + 7], ARGV[i + 8], due)
end
mark(ARGV[3], ARGV[4])
hint()
return {'ok', NOW}
