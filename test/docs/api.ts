/** The tables of the page's API, from its OpenAPI description. */
import { describeApi } from '../../src/page/output/openapi.ts'
import { code, codes, sentence, table } from './markdown.ts'

interface Parameter {
  name: string
  in: 'path' | 'query'
  description?: string
}

interface Operation {
  summary: string
  parameters: Parameter[]
  requestBody?: {
    content: {
      'application/json': {
        schema: { properties: Record<string, { description?: string }>; required: string[] }
      }
    }
  }
}

type Paths = Record<string, { get?: Operation; post?: Operation }>

/** As `GET /api/v1/openapi.json` answers, laid out to be read. */
export function openapiFile(version: string): string {
  return `${JSON.stringify(describeApi(version), null, 2)}\n`
}

export function apiBlocks(): [string, string][] {
  const paths = Object.entries(describeApi('')['paths'] as Paths)
  const gets = paths.flatMap(([path, { get }]) => (get ? [{ path, ...get }] : []))
  const posts = paths.flatMap(([path, { post }]) => (post ? [{ path, ...post }] : []))
  return [
    [
      'api questions',
      table(
        ['Request', 'Answers', 'Parameters'],
        gets.map(({ path, summary, parameters }) => [
          code(`GET ${path}`),
          sentence(summary),
          codes(inQuery(parameters).map(({ name }) => name)),
        ]),
      ),
    ],
    ['api parameters', table(['Parameter', 'Meaning'], meanings(gets))],
    [
      'api acts',
      table(
        ['Request', 'Does', 'Fields of the body'],
        posts.map((operation) => [
          code(`POST ${operation.path}`),
          sentence(operation.summary),
          fieldsOf(operation),
        ]),
      ),
    ],
  ]
}

function inQuery(parameters: readonly Parameter[]): Parameter[] {
  return parameters.filter((one) => one.in === 'query')
}

/** Each name once with all that it means. */
function meanings(operations: readonly Operation[]): string[][] {
  const known = new Map<string, Set<string>>()
  for (const { name, description = '' } of operations.flatMap((one) => inQuery(one.parameters))) {
    known.set(name, (known.get(name) ?? new Set()).add(description))
  }
  return [...known].map(([name, said]) => [code(name), [...said].filter(Boolean).join(' Or: ')])
}

function fieldsOf({ requestBody }: Operation): string {
  const { properties = {}, required = [] } = requestBody?.content['application/json'].schema ?? {}
  return Object.entries(properties)
    .map(([name, { description = '' }]) => {
      const said = description === '' ? code(name) : `${code(name)}: ${description}`
      return required.includes(name) ? said : `${said} Optional.`
    })
    .join(' ')
}
