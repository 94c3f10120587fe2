#!lua flags=allow-oom
-- Unfreezes a message: returns its members to the queue, up to `max` at a time. Each keeps the
-- attempts and lost answers of the message. From the first call on nobody sends the message.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: ref, stale (an attempt that began so many ms ago has died), max, bw? (batch wait
--          in ms), places {destination: group} (for items of people; without one they stay single),
--          facts? ({n, h, rr, x} of the attempts, if another account holds the message)
-- Returns  JSON {status: open (a batch, all is done) | going (a summary) | none (no such message is
--          stored here) | busy (it is being sent) | answered (its outcome is known)}; going and
--          none also have left (members that remain here), facts and about?
-- @include lib/ledger.lua

local ask = cjson.decode(ARGV[1])
local bid = split_ref(ask.ref)[2]
local name, frozen = key('batch', bid), key('members', bid)
local text = redis.call('GET', name)
local batch = text and cjson.decode(text)

if batch and batch.o then
  return cjson.encode({ status = 'answered' })
end
if batch and batch.st == 'sending' and now - batch.at < ask.stale then
  return cjson.encode({ status = 'busy' })
end

local function close(message)
  if message.st == 'sending' then
    message.rr = (message.rr or 0) + 1
    remember(message, { n = message.n, at = message.at, o = 'answer lost', r = 'interrupted' })
  end
  message.st = 'queued'
  message.un = true
  message.tok = nil -- of a send still under way only `delivered` is accepted
end

if batch and not batch.un then
  close(batch)
  redis.call('SET', name, cjson.encode(batch))
end
local facts = batch or ask.facts or { n = 0 }

local function free(ref)
  local rid, n, record, item = load_item(ref)
  if not item or item.st ~= 'batch' or item.b ~= bid then
    return
  end
  local group = ask.places[item.d]
  item.b = nil
  item.alone = not group or nil
  item.n = math.max(item.n, facts.n)
  item.h = facts.h or item.h
  item.x = facts.x
  item.rr = math.max(item.rr or 0, facts.rr or 0)
  if group then
    open_group(group)
    item.y = group.id
    item.ug = group.urgent or nil
  end
  enqueue(rid, n, item, ask.bw)
  save_record(rid, record)
end

if batch and batch.m then
  for _, ref in ipairs(batch.m) do
    free(ref)
  end
  redis.call('DEL', name)
  unwake(ask.ref)
  return cjson.encode({ status = 'open' })
end
local refs = redis.call('ZRANGE', frozen, 0, ask.max - 1)
for _, ref in ipairs(refs) do
  free(ref)
end
call_all('ZREM', frozen, refs, 1)
return cjson.encode({ status = batch and 'going' or 'none', left = redis.call('ZCARD', frozen), about = facts.about,
  facts = { n = facts.n, h = facts.h, rr = facts.rr, x = facts.x } })
