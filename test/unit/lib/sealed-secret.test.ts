import { createCipheriv, hkdfSync, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createSecretBox } from '../../../src/lib/sealed-secret.ts'

const box = createSecretBox(() => 'fw_the-key')
const anyText = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
)

test('what is sealed opens again, whatever it is, under its own context', () => {
  fc.assert(
    fc.property(anyText, anyText, (clear, context) => {
      expect(box.open(box.seal(clear, context), context)).toBe(clear)
    }),
  )
})

test('no context but its own opens a seal', () => {
  fc.assert(
    fc.property(anyText, anyText, anyText, (clear, context, other) => {
      fc.pre(other !== context)
      expect(box.open(box.seal(clear, context), other)).toBeUndefined()
    }),
  )
  expect(box.open(box.seal('hunter2', 'credential/1'), 'credential/11')).toBeUndefined()
})

test('no owner but its own opens a seal, though both have the same key', () => {
  const [acme, other] = ['acme', 'acme-eu'].map((owner) => createSecretBox(() => 'fw_one', owner))
  const sealed = acme!.seal('hunter2', 'credential/1')
  expect(acme!.open(sealed, 'credential/1')).toBe('hunter2')
  expect(other!.open(sealed, 'credential/1')).toBeUndefined()
  const [joined, apart] = ['a', 'a","b'].map((owner) => createSecretBox(() => 'fw_one', owner))
  expect(joined!.open(apart!.seal('hunter2', 'c'), 'b","c')).toBeUndefined()
})

test('a seal does not tell how long its secret is', () => {
  const lengths = (clear: string[]): Set<number> =>
    new Set(clear.map((text) => box.seal(text, 'credential/1').length))
  expect(lengths(['', 'a', 'hunter2', '\u0000', 'p'.repeat(31)]).size).toBe(1)
  expect(lengths(['p'.repeat(32), 'p'.repeat(63)]).size).toBe(1)
  expect(lengths(['p'.repeat(31), 'p'.repeat(32)]).size).toBe(2)
})

test('what is sealed in the present form opens in later versions', () => {
  const sealed =
    's2.xQ9PpilbDqbTlQNxIj6JmOr9U_wr5LWwDeEJdOMiH1dnZQtiNTgC5-5qE300vXrBZDglyRjQ-zd2prygTuaYneJPgBzYj9LR08mi7jIlSQn0X9ZVwjNCVut1siE'
  const owned = createSecretBox(() => 'fw_the-key', 'acme')
  expect(owned.open(sealed, 'credential/1')).toBe('hunter2')
})

test('no seal opens whose tag was cut short, which makes guessing easy', () => {
  const key = Buffer.from(hkdfSync('sha256', 'fw_the-key', '', 'tocsin sealed secret v2', 32))
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(JSON.stringify(['', 'c']), 'utf16le'))
  const padded = cipher.update(Buffer.alloc(64).fill(0x80, 0, 1))
  cipher.final()
  const sealOf = (tagBytes: number): string => {
    const tag = cipher.getAuthTag().subarray(0, tagBytes)
    return `s2.${Buffer.concat([nonce, tag, padded]).toString('base64url')}`
  }
  expect(box.open(sealOf(16), 'c')).toBe('')
  for (const tagBytes of [0, 4, 8, 12, 13, 15])
    expect(box.open(sealOf(tagBytes), 'c')).toBeUndefined()
})

test('a seal says its form, so that one cannot be passed off as the older', () => {
  const sealed = box.seal('hunter2', 'credential/1')
  expect(sealed).toMatch(/^s2\./)
  const relabelled = `s1.${sealed.slice(3)}`
  for (const context of ['credential/1', '["","credential/1"]']) {
    expect(box.open(relabelled, context)).toBeUndefined()
  }
})

test('no seal opens after any one of its characters has changed, or with some added or gone', () => {
  const sealed = box.seal('hunter2', 'credential/1')
  for (let place = 0; place < sealed.length; place += 1) {
    for (const letter of ['A', 'b', '_', '=', ' ', '\u0000']) {
      if (sealed[place] === letter) continue
      const changed = sealed.slice(0, place) + letter + sealed.slice(place + 1)
      expect(box.open(changed, 'credential/1')).toBeUndefined()
    }
    expect(box.open(sealed.slice(0, place), 'credential/1')).toBeUndefined()
  }
  for (const added of [`${sealed}A`, `${sealed}=`, `${sealed}\n`, ` ${sealed}`]) {
    expect(box.open(added, 'credential/1')).toBeUndefined()
  }
  expect(box.open(sealed, 'credential/1')).toBe('hunter2')
})

test('what was never sealed opens to nothing and throws nothing', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      expect(box.open(text, 'credential/1')).toBeUndefined()
      expect(box.open(`s1.${text}`, 'credential/1')).toBeUndefined()
      expect(box.open(`s2.${text}`, 'credential/1')).toBeUndefined()
    }),
  )
})

test('another key opens nothing; the key is asked for at each use, so a change counts at once', () => {
  let key = 'fw_old'
  const rotating = createSecretBox(() => key)
  const sealed = rotating.seal('hunter2', 'credential/1')
  key = 'fw_new'
  expect(rotating.open(sealed, 'credential/1')).toBeUndefined()
  expect(rotating.open(rotating.seal('new', 'u'), 'u')).toBe('new')
  key = 'fw_old'
  expect(rotating.open(sealed, 'credential/1')).toBe('hunter2')
  expect(createSecretBox(() => 'fw_old').open(sealed, 'credential/1')).toBe('hunter2')
})

test('a key that cannot be read opens nothing, and what sealing then throws has no secret in it', () => {
  let isReadable = true
  const read = (): string => {
    if (!isReadable) throw new Error('ENOENT: no such file /run/secrets/key')
    return 'fw_key'
  }
  const fragile = createSecretBox(read)
  const sealed = fragile.seal('hunter2', 'credential/1')
  isReadable = false
  expect(fragile.open(sealed, 'credential/1')).toBeUndefined()
  expect(() => fragile.seal('hunter2', 'credential/1')).toThrow(/^ENOENT: no such file [\w/]+$/)
})

test('a seal shows nothing of its secret and is never the same twice', () => {
  const seals = Array.from({ length: 100 }, () => box.seal('hunter2', 'credential/1'))
  expect(new Set(seals).size).toBe(100)
  for (const seal of seals) {
    expect(seal).toMatch(/^s2\.[\w-]+$/)
    const bytes = Buffer.from(seal.slice(3), 'base64url')
    expect(bytes.includes('hunter2')).toBe(false)
    expect(bytes.includes(Buffer.from('hunter2', 'utf16le'))).toBe(false)
  }
})
