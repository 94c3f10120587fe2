import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { monitoringSchema, parseMonitoring } from '../../src/cli/monitoring/monitoring-file.ts'

const root = join(import.meta.dirname, '../..')

test('config/monitoring.yaml loads, and speaks of every key of an asset and of a policy but for names', () => {
  const file = readFileSync(join(root, 'config/monitoring.yaml'), 'utf8')
  const { content } = parseMonitoring(file, 'monitoring.yaml', {})
  expect(Object.keys(content.assets ?? {})).toEqual(['brand', 'website', 'former-brand'])
  expect(content.assets?.['brand']?.policies).toEqual(['no-jobs'])
})

const page = readFileSync(join(root, 'docs/monitoring-as-code.md'), 'utf8')

test('the example of the documentation loads', () => {
  const blocks = [...page.matchAll(/^```yml\n(.*?)^```/gms)].map(([, block = '']) => block)
  expect(blocks).toHaveLength(1)
  const { content } = parseMonitoring(blocks[0] ?? '', 'monitoring-as-code.md', {})
  expect(Object.keys(content.assets ?? {})).not.toEqual([])
})

test('the JSON Schema is the one of this version: npm run --silent tocsin -- schema --monitoring > config/monitoring.schema.json', () => {
  const committed = readFileSync(join(root, 'config/monitoring.schema.json'), 'utf8')
  expect(committed).toBe(`${JSON.stringify(monitoringSchema(), null, 2)}\n`)
})

test('every property of the JSON Schema is described, and no other is allowed beside it', () => {
  const bare: string[] = []
  const visit = (schema: unknown, path: string): void => {
    if (typeof schema !== 'object' || schema === null) return
    const { properties, additionalProperties } = schema as Record<string, unknown>
    if (properties && additionalProperties !== false) bare.push(`${path}: open`)
    for (const [key, value] of Object.entries(properties ?? {})) {
      const { description } = value as { description?: string }
      if (description === undefined) bare.push(`${path}.${key}`)
    }
    for (const [key, value] of Object.entries(schema)) visit(value, `${path}.${key}`)
  }
  visit(monitoringSchema(), '')
  expect(bare).toEqual([])
})

test('the documentation names every key of the file', () => {
  const keys = new Set<string>()
  const visit = (schema: unknown): void => {
    if (typeof schema !== 'object' || schema === null) return
    const { properties } = schema as { properties?: object }
    for (const key of Object.keys(properties ?? {})) keys.add(key)
    for (const value of Object.values(schema)) visit(value)
  }
  visit(monitoringSchema())
  expect([...keys].filter((key) => !page.includes(`\`${key}\``))).toEqual([])
})
