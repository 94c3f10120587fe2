/** The OpenAPI description, from the same schemas that check requests. */
import { z } from 'zod'
import { apiRoot } from '../desk.ts'
import { acts, questions } from '../tables.ts'

type Json = Record<string, unknown>

export function describeApi(version: string): Json {
  const paths = new Map<string, Json>()
  const add = (path: string, method: 'get' | 'post', operation: Json): void => {
    const place = `${apiRoot}${path.replaceAll(/:(\w+)/g, '{$1}')}`
    paths.set(place, { ...paths.get(place), [method]: operation })
  }
  for (const { path, summary, query } of questions) {
    const operationId = operationName('get', path)
    add(path, 'get', { operationId, summary, parameters: parametersOf(path, query), responses })
  }
  for (const { path, summary, input } of acts) {
    const operationId = operationName('post', path)
    const parameters = parametersOf(path, input).filter((one) => one['in'] === 'path')
    const requestBody = {
      required: true,
      content: { 'application/json': { schema: bodyOf(path, input) } },
    }
    add(path, 'post', { operationId, summary, parameters, requestBody, responses })
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tocsin',
      version,
      description: 'What Tocsin knows and may be asked to do. Times are ISO 8601 in UTC.',
    },
    security: [{ token: [] }],
    paths: Object.fromEntries([...paths].toSorted(([one], [other]) => (one < other ? -1 : 1))),
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      schemas: { Problem: problem },
    },
  }
}

/** RFC 9457. */
const problem = {
  type: 'object',
  required: ['type', 'status', 'detail'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    remedy: { type: 'string', description: 'What to do.' },
  },
}

const responses = {
  200: { description: 'The answer.', content: { 'application/json': { schema: {} } } },
  default: {
    description: 'Why it is refused.',
    content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
  },
}

/** `get_events_account_id`. */
function operationName(method: string, path: string): string {
  return [method, ...path.split(/[/:-]+/).filter(Boolean)].join('_')
}

interface Schema {
  properties: Record<string, Json>
  required: string[]
}

function schemaOf(fields: z.ZodObject): Schema {
  const { properties = {}, required = [] } = z.toJSONSchema(fields, {
    io: 'input',
    unrepresentable: 'any',
  }) as Partial<Schema>
  return { properties, required }
}

function isInPath(path: string, name: string): boolean {
  return path.split('/').includes(`:${name}`)
}

function parametersOf(path: string, fields: z.ZodObject): Json[] {
  const { properties, required } = schemaOf(fields)
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: isInPath(path, name) ? 'path' : 'query',
    required: isInPath(path, name) || required.includes(name),
    ...(description !== undefined && { description }),
    schema,
  }))
}

function bodyOf(path: string, fields: z.ZodObject): Json {
  const { properties, required } = schemaOf(fields)
  const own = Object.entries(properties).filter(([name]) => !isInPath(path, name))
  return {
    type: 'object',
    properties: Object.fromEntries(own),
    required: required.filter((name) => !isInPath(path, name)),
  }
}
