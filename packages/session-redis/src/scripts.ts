import { Script } from './connection.ts';
import { CHUNK } from './chunk.ts';
import { REMEMBERED } from './operations.ts';

// All scripts: KEYS = session, messages, counter. ARGV[1] is the beginning of the operation's entry (operations.ts). They answer
// with a list of texts, the first of which says what happened.
const PRELUDE = `
local session, messages, counter = KEYS[1], KEYS[2], KEYS[3]

local function wrong_type()
  for key, kind in pairs({[session] = 'hash', [messages] = 'list', [counter] = 'string'}) do
    local actual = redis.call('TYPE', key).ok
    if actual ~= kind and actual ~= 'none' then return {'type', kind, actual} end
  end
end
`;

/** What a change does after its first step must not be refused: a script that ends in its midst keeps what it did until then. */
const RIGHTS = `
local function not_allowed(...)
  for _, command in ipairs({...}) do
    if redis.acl_check_cmd and not redis.acl_check_cmd(unpack(command)) then
      return redis.error_reply("NOPERM this user has no permissions to run the '" .. string.lower(command[1]) .. "' command")
    end
  end
end
`;

const VERSIONS = `
local function count_now()
  local count = redis.call('HGET', session, '_ver') or '0'
  if string.find(count, '^%d+$') and string.len(count) <= 16 then return count end
  return '0'
end

local function version_of(count)
  local last = redis.call('LINDEX', messages, -1)
  local length = string.format('%.0f', redis.call('LLEN', messages))
  return count .. ':' .. length .. ':' .. (last and redis.sha1hex(last) or '')
end
`;

const OPERATIONS = `
local ops = redis.call('HGET', session, '_ops') or ''
if string.sub(ops, 1, 2) ~= '[[' then ops = '' end

local function known()
  local _, to = string.find(ops, ARGV[1], 1, true)
  if not to then return end
  local digest, version = string.match(ops, '^"([^"]*)","([^"]*)"', to + 1)
  return {'known', digest or '', version or ''}
end

local time = redis.call('TIME')

-- Counts changes. Begins with the time, so that a history that was cleared does not get the versions of an earlier one.
local function next_count(count)
  if count == '0' then count = time[1] .. string.format('%06d', time[2])
  else count = string.format('%.0f', tonumber(count) + 1) end
  redis.call('HSET', session, '_ver', count)
  return count
end

local function remember(digest, version)
  local entry = ARGV[1] .. '"' .. digest .. '","' .. version .. '"]'
  if ops == '' then ops = '[' .. entry .. ']' else ops = string.sub(ops, 1, -2) .. ',' .. entry .. ']' end
  local _, others = string.gsub(ops, '"%],%["', '')
  while others >= ${REMEMBERED} do
    local _, first = string.find(ops, '"],["', 1, true)
    ops = '[' .. string.sub(ops, first - 1)
    others = others - 1
  end
  redis.call('HSET', session, '_ops', ops)
end
`;

const WRITES = `
${RIGHTS}
local refused = not_allowed({'DEL', messages}, {'RPUSH', messages, ''}, {'LTRIM', messages, 0, 0},
  {'HSET', session, '', ''}, {'HSETNX', session, '', ''}, {'PEXPIRE', messages, 1}, {'PEXPIREAT', messages, 1})
if refused then return refused end
${VERSIONS}${OPERATIONS}
-- Of a list that holds what it is to hold: makes its session, and remembers the operation.
local function written(digest, id, is_change, is_use)
  redis.call('HSET', session, 'session_id', id)
  redis.call('HSETNX', session, 'created_at', time[1])
  redis.call('HSETNX', session, 'updated_at', time[1])
  if is_use then redis.call('HSET', session, 'updated_at', time[1]) end
  local count = count_now()
  if is_change then count = next_count(count) end
  local version = version_of(count)
  remember(digest, version)
  return {'done', version}
end

-- Its life begins anew, or, without a ttl, a list that was made anew ends when the one before it did.
local function lives(ttl, expiry)
  if ttl ~= '' then
    local at = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ttl)
    for _, key in ipairs({session, messages, counter}) do redis.call('PEXPIREAT', key, string.format('%.0f', at)) end
  elseif expiry > 0 and redis.call('PTTL', messages) == -1 then
    redis.call('PEXPIRE', messages, expiry)
  end
end
`;

/**
 * ARGV: 2 digest, 3 session id, 4 ttl in ms, or empty, or `keep` (the times stay as they are), 5 version that it must have,
 * or empty, 6 `append`, `suffix` or `replace`, 7 how many elements at the end must be as the next arguments say, these, then
 * what to push. `suffix` removes these.
 */
export const writeScript: Script = new Script(`${PRELUDE}
local wrong = wrong_type()
if wrong then return wrong end
${WRITES}
local done = known()
if done then return done end
local actual = version_of(count_now())
if ARGV[5] ~= '' and actual ~= ARGV[5] then return {'changed', actual} end
local mode, expected, upkeep = ARGV[6], tonumber(ARGV[7]), ARGV[4] == 'keep'
local first = 8 + expected
if expected > 0 then
  local tail = redis.call('LRANGE', messages, -expected, -1)
  for index = 1, expected do
    if tail[index] ~= ARGV[7 + index] then return {'changed', actual} end
  end
end
local expiry = redis.call('PTTL', messages)
if mode == 'replace' then redis.call('DEL', messages)
elseif expected > 0 then redis.call('LTRIM', messages, 0, -expected - 1) end
for from = first, #ARGV, ${CHUNK} do
  redis.call('RPUSH', messages, unpack(ARGV, from, math.min(from + ${CHUNK} - 1, #ARGV)))
end
local has_items = first <= #ARGV
local answer = written(ARGV[2], ARGV[3], has_items or expected > 0 or mode == 'replace', has_items and not upkeep)
lives(upkeep and '' or ARGV[4], expiry)
return answer
`);

/** KEYS: a list on its way in. ARGV: 1 how many elements it has, 2 for how long it is kept, in ms, then what to push. */
export const stageScript: Script = new Script(`
local length = redis.call('LLEN', KEYS[1])
if length == tonumber(ARGV[1]) then
  for from = 3, #ARGV, ${CHUNK} do
    redis.call('RPUSH', KEYS[1], unpack(ARGV, from, math.min(from + ${CHUNK} - 1, #ARGV)))
  end
  length = redis.call('LLEN', KEYS[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if length == tonumber(ARGV[1]) + #ARGV - 2 then return {'done', ''} end
return {'gone'}
`);

/**
 * KEYS: beside the others the list that was on its way in. ARGV: 2 session id, 3 ttl in ms, or empty, 4 version that it must
 * have, or empty, 5 `create`, `replace` or `append`, 6 how many elements it has.
 */
export const publishScript: Script = new Script(`${PRELUDE}
local staged = KEYS[4]
local wrong = wrong_type()
if wrong then return wrong end
${WRITES}
refused = not_allowed({'RENAME', staged, messages}, {'PERSIST', messages}, {'LRANGE', staged, 0, 0})
if refused then return refused end
local done = known()
if done then return done end
local how, count = ARGV[5], tonumber(ARGV[6])
if redis.call('LLEN', staged) ~= count then return {'gone'} end
local exists = redis.call('HEXISTS', session, 'session_id') == 1 or redis.call('EXISTS', messages) == 1
if how == 'create' and exists then return {'exists'} end
local actual = version_of(count_now())
if ARGV[4] ~= '' and actual ~= ARGV[4] then return {'changed', actual} end
local expiry = redis.call('PTTL', messages)
if how == 'append' and redis.call('EXISTS', messages) == 1 then
  for from = 0, count - 1, ${CHUNK} do
    redis.call('RPUSH', messages, unpack(redis.call('LRANGE', staged, from, from + ${CHUNK} - 1)))
  end
  redis.call('DEL', staged)
else
  redis.call('DEL', messages)
  if count > 0 then
    redis.call('RENAME', staged, messages)
    redis.call('PERSIST', messages)
  end
end
local answer = written('', ARGV[2], count > 0 or how == 'replace', true)
lives(ARGV[3], expiry)
return answer
`);

/** ARGV: 2 session id, 3 version that it must have, 4 the newest element. */
export const popScript: Script = new Script(`${PRELUDE}
local wrong = wrong_type()
if wrong then return wrong end
${RIGHTS}
local refused = not_allowed({'RPOP', messages}, {'HSET', session, '', ''}, {'PEXPIRE', session, 1})
if refused then return refused end
${VERSIONS}${OPERATIONS}
local done = known()
if done then return done end
local count = count_now()
local actual = version_of(count)
if actual ~= ARGV[3] or redis.call('LINDEX', messages, -1) ~= ARGV[4] then return {'changed', actual} end
local expiry = redis.call('PTTL', messages)
local fresh = redis.call('EXISTS', session) == 0
redis.call('RPOP', messages)
next_count(count)
remember('', '')
if fresh then
  redis.call('HSET', session, 'session_id', ARGV[2], 'created_at', time[1], 'updated_at', time[1])
  if expiry > 0 then redis.call('PEXPIRE', session, expiry) end
end
return {'done'}
`);

/** ARGV: 1 version that it must have, or empty, 2 milliseconds since 1970 before which it must have been updated, or empty. */
export const clearScript: Script = new Script(`${PRELUDE}
local wrong = wrong_type()
if wrong then return wrong end
${VERSIONS}
if redis.call('EXISTS', session, messages) == 0 then
  redis.call('DEL', counter)
  return {'gone'}
end
if ARGV[2] ~= '' then
  local updated = tonumber(redis.call('HGET', session, 'updated_at') or '')
  if not updated or updated * 1000 >= tonumber(ARGV[2]) then return {'kept'} end
end
if ARGV[1] ~= '' then
  local actual = version_of(count_now())
  if actual ~= ARGV[1] then return {'changed', actual} end
end
local items = string.format('%.0f', redis.call('LLEN', messages))
redis.call('DEL', session, messages, counter)
return {'removed', items}
`);

/** ARGV: 1 `_meta` as it must be, or empty, 2 as it is to be, or empty, 3 session id, 4 ttl in ms of a new session, or empty. */
export const metadataScript: Script = new Script(`${PRELUDE}
local wrong = wrong_type()
if wrong then return wrong end
if (redis.call('HGET', session, '_meta') or '') ~= ARGV[1] then return {'changed'} end
local fresh = redis.call('EXISTS', session, messages) == 0
local time = redis.call('TIME')
redis.call('HSET', session, 'session_id', ARGV[3])
redis.call('HSETNX', session, 'created_at', time[1])
redis.call('HSETNX', session, 'updated_at', time[1])
if ARGV[2] == '' then redis.call('HDEL', session, '_meta') else redis.call('HSET', session, '_meta', ARGV[2]) end
if fresh and ARGV[4] ~= '' then redis.call('PEXPIRE', session, ARGV[4]) end
return {'done', ''}
`);

/** KEYS: the index. ARGV: 1 session id. The newest comes first: scores are negative. */
export const indexScript: Script = new Script(`
local time = redis.call('TIME')
redis.call('ZADD', KEYS[1], string.format('%.0f', -(time[1] * 1000 + math.floor(time[2] / 1000))), ARGV[1])
return {'done', ''}
`);

/** KEYS: the index. ARGV: pairs of session id and score. Entries that were renewed meanwhile stay. */
export const forgetScript: Script = new Script(`
for index = 1, #ARGV, 2 do
  if redis.call('ZSCORE', KEYS[1], ARGV[index]) == ARGV[index + 1] then redis.call('ZREM', KEYS[1], ARGV[index]) end
end
return {'done', ''}
`);
