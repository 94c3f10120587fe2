/** The description of the API, as it stands in the reference, is one of OpenAPI 3.1. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'

const file = join(import.meta.dirname, '../../docs/reference/openapi.json')
const described = JSON.parse(readFileSync(file, 'utf8')) as {
  paths: Record<string, Record<string, { operationId: string; summary: string }>>
}

test('the description of the API is valid OpenAPI 3.1', async () => {
  const validator = new Validator()
  const { valid, errors } = await validator.validate(structuredClone(described))
  expect({ valid, errors }).toEqual({ valid: true, errors: undefined })
  expect(validator.version).toBe('3.1')
  expect(JSON.stringify(validator.resolveRefs())).not.toContain('"$ref"')
})

test('every operation has an id of its own and a summary', () => {
  const operations = Object.values(described.paths).flatMap((path) => Object.values(path))
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length)
  expect(operations.filter(({ summary }) => !/\S/.test(summary))).toEqual([])
})

test('a description with a response that says nothing is not valid', async () => {
  const wrong = { ...described, paths: { '/x': { get: { responses: { 200: {} } } } } }
  expect((await new Validator().validate(wrong)).valid).toBe(false)
})
