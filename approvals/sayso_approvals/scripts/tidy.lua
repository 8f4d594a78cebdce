-- tidy: takes members that stand for nothing out of the indexes of work. ARGV from 3: members of READY.
local gone = {}
for i = 3, #ARGV do
  if get(string.sub(ARGV[i], 1, -#SID - 2), 'call') == '' and call('ZREM', READY, ARGV[i]) == 1 then
    gone[#gone + 1] = ARGV[i]
  end
end
if call('EXISTS', SESSION) == 0 and call('ZREM', RUNNING, SID) == 1 then gone[#gone + 1] = SID end
return gone
