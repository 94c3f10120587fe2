/**
 * Secrets of every kind are planted, everything that can go wrong goes wrong, and whoever is spoken to
 * echoes what it was told. Then all that the daemon and its commands have said and stored is searched.
 */
import { expect, test } from 'vitest'
import { planted } from '../security/planted-secrets.ts'
import { secretScan } from '../security/secret-scan.ts'

test('no secret is in any log, page, answer, command, message, or in what Redis keeps and writes', async () => {
  const { outputs, bytes, planted: sought, found } = await secretScan()
  expect(found).toEqual([])
  expect(outputs).toBeGreaterThan(800)
  expect(bytes).toBeGreaterThan(1_000_000)
  expect(sought).toBeGreaterThan(Object.keys(planted).length)
})
