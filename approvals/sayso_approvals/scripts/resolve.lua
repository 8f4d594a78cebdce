-- resolve: what a message finds on arrival, in one look. Writes nothing.
-- KEYS after the common ones: that of the message's answer and that of the task it names.
local known = call('HMGET', SESSION, 'requester', 'task', 'last')
return {NOW, known[1] or '', known[2] or '', known[3] or '', call('ZCOUNT', ANSWERING, '(' .. NOW, '+inf'),
  call('HGETALL', LIVE), call('GET', KEYS[14]) or '', call('HMGET', KEYS[15], 'version', 'document')}
