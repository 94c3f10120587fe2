import { afterEach, expect, test } from 'vitest'
import type { Redis } from '../../../src/redis/client.ts'
import { createSecretBox } from '../../../src/lib/sealed-secret.ts'
import { readPayload } from '../../../src/store/records.ts'
import type { SandboxCredential } from '../../../src/sandbox/credentials/credentials.ts'
import { aCredentialFeed } from '../../support/feeds.ts'
import { startFeedRig, type FeedRig, type FeedRigOptions } from '../../support/feed-rig.ts'
import { expectConservation, redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const rescan = { everyMs: 1, backMs: 0 }
const feed = aCredentialFeed({ rescan })
const login = {
  identityName: 'Ann@example.com',
  hash: 'Pangolin-clear-1',
  hashType: null,
  domain: 'example.com',
}

let rig: FeedRig

async function begin(given: Partial<FeedRigOptions> = {}): Promise<void> {
  rig = await startFeedRig({ tests, ...given })
}

afterEach(() => rig.stop())

function sourceOf(id: string): Pick<SandboxCredential, 'source'> {
  return { source: { id, name: id, breachedAtMs: null, leakedAtMs: null, piiTags: [] } }
}

function add(source: string, given: Partial<SandboxCredential> = {}): string {
  const [one] = rig.sandbox.addCredentials([{ ...login, ...sourceOf(source), ...given }])
  return `credential/${one!.id}`
}

/** State and reason of each item of a credential, by destination. */
async function itemsOf(uid: string): Promise<Record<string, string>> {
  const { items } = (await rig.records()).get(uid)!
  return Object.fromEntries(
    items.map(({ destination, state, heldFor }) => [
      destination,
      heldFor ? `${state}: ${heldFor}` : state,
    ]),
  )
}

test('the same login and secret from another source is told once; the first says where else it was', async () => {
  await begin()
  const first = add('combolists')
  await rig.toEnd(feed)
  const again = add('stealer_logs', { identityName: 'ann@EXAMPLE.com', domain: 'Example.com' })
  const third = add('telegram')
  await rig.toEnd(feed)
  expect(await itemsOf(first)).toEqual({ soc: 'queued' })
  expect(await itemsOf(again)).toEqual({ soc: 'suppressed: seen_again' })
  expect(await itemsOf(third)).toEqual({ soc: 'suppressed: seen_again' })
  const records = await rig.records()
  expect(records.get(first)!.seenAgain).toMatchObject({ times: 2 })
  expect(records.get(first)!.seenAgain!.sources).toEqual(
    expect.arrayContaining(['stealer_logs', 'telegram']),
  )
  expect(records.get(again)!.items[0]!.rule).toBe(first)
  const { sinks } = await expectConservation(rig.ledger)
  expect(sinks['soc']).toMatchObject({ created: 3, suppressed: 2 })
})

test('no leaked secret stands in Redis in clear, wherever a record holds it', async () => {
  await begin()
  const secrets = ['Pangolin-clear-1', 'Pangolin-name-2', 'Pangolin-raw-3', 'f'.repeat(32)]
  add('combolists')
  add('combolists', { identityName: `ann@example.com:${secrets[1]}`, hash: secrets[1]! })
  add('combolists', { raw: { id: 'none', hash: secrets[2], identity_name: 'ann' } })
  add('combolists', { identityName: 'bob@example.com', hash: secrets[3]!, hashType: 'md5' })
  await rig.toEnd(feed)
  await rig.toEnd(feed, 'rescan')
  const stored = await storedIn(tests.redis, rig.ledger.key())
  expect(stored).toContain('bob@example.com')
  expect(secrets.filter((secret) => stored.includes(secret))).toEqual([])
})

test('for sinks that reveal a secret is sealed in its payload, and stands nowhere else', async () => {
  const box = createSecretBox(() => 'the-api-key')
  await begin({ sealSecret: (uid, secret) => box.seal(secret, uid) })
  const uid = add('combolists')
  const older = add('stealer_logs', { importedAtMs: Date.now() - feed.startMs - 3_600_000 })
  await rig.toEnd(feed)
  const records = await rig.records()
  expect(records.has(older)).toBe(false)
  const { sealedSecret } = (await readPayload(rig.ledger, records.get(uid)!.recordId))!
  expect(box.open(uid, sealedSecret!)).toBeUndefined()
  expect(box.open(sealedSecret!, uid)).toBe(login.hash)
  const stored = await storedIn(tests.redis, rig.ledger.key())
  expect(stored.split(sealedSecret!)).toHaveLength(2)
  expect(stored).not.toContain(login.hash)
})

/** Names and values of all keys that begin so, as one text. */
async function storedIn(redis: Redis, base: string): Promise<string> {
  const texts: unknown[] = []
  for (const name of await redis.keys(`${base.replaceAll(/[[\]*?\\]/g, '\\$&')}*`)) {
    texts.push(name, await valueOf(redis, name))
  }
  return JSON.stringify(texts)
}

async function valueOf(redis: Redis, name: string): Promise<unknown> {
  switch (await redis.type(name)) {
    case 'string':
      return redis.get(name)
    case 'hash':
      return redis.hgetall(name)
    case 'set':
      return redis.smembers(name)
    case 'zset':
      return redis.zrange(name, '0', '-1')
    case 'list':
      return redis.lrange(name, 0, -1)
    default:
      throw new Error(`${name} is of a type that is not searched`)
  }
}
