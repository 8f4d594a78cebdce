-- release: ends the turn cleanly. One whose lease has ended stays dirty: its last step may not have been written. ARGV 3 token
if not held(ARGV[3]) then return {'lost'} end
release(ARGV[3])
return {'ok', NOW}
