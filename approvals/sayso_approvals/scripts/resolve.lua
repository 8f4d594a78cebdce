-- resolve: what a message finds on arrival, in one look. Writes nothing.
local known = call('HMGET', SESSION, 'requester', 'task', 'last')
return {NOW, known[1] or '', known[2] or '', known[3] or '', call('ZCOUNT', ANSWERING, '(' .. NOW, '+inf'),
  call('HGETALL', LIVE)}
