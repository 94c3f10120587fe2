/** What an asset's `data` holds, by its type (facts.md 5). */
import { isIP } from 'node:net'
import { z } from 'zod'
import type { AssetType } from '../../service/wire/enumerations.ts'
import { LuceneError, parseLucene } from '../search/lucene.ts'

const word = z.string().trim().min(1)
const host = /^(?=.{1,253}$)([a-z0-9_]([a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*$/i

type Data = Record<string, unknown>

/** `type` may be repeated inside. */
function of<Shape extends z.ZodRawShape>(type: AssetType, shape: Shape): z.ZodType<Data> {
  return z.strictObject({ type: z.literal(type).optional(), ...shape })
}

const plain = {
  domain: of('domain', { fqdn: z.string().regex(host, 'not a domain name') }),
  keyword: of('keyword', { keyword: word }),
  email: of('email', { email: z.email() }),
  username: of('username', { username: word }),
  name: of('name', { first_name: word, last_name: word, is_strict: z.boolean().optional() }),
  github_repository: of('github_repository', { repo_owner: word, repo_name: word }),
  search_query: of('search_query', {
    search_query: word.superRefine((query, context) => {
      const problem = luceneProblem(query)
      if (problem) context.addIssue({ code: 'custom', message: problem })
    }),
  }),
  bin: of('bin', { bin: z.string().regex(/^\d{6,8}$/, 'not six to eight digits') }),
  ip: of('ip', { ip: z.string().refine((text) => isIP(text) > 0, 'not an IP address') }),
  secret: of('secret', { secret: word }),
  azure_tenant: of('azure_tenant', { tenant_id: word }),
  ransomleak: of('ransomleak', { source: word, id: word }),
  external_id: of('external_id', { source: word, id: word }),
  address_data: of('address_data', {
    street: word,
    city: word,
    country: z.string().length(2),
    state: word,
  }),
  birth_year: of('birth_year', { year: z.int().min(1900).max(2100) }),
  role: of('role', { role: word }),
  phone_number: of('phone_number', { phone_number: z.string().min(7) }),
} satisfies Partial<Record<AssetType, z.ZodType<Data>>>

/** What is wrong with a Lucene query; null: nothing. */
export function luceneProblem(query: string): string | null {
  try {
    parseLucene(query)
    return null
  } catch (error) {
    if (error instanceof LuceneError) return error.message
    throw error
  }
}

export interface AssetContent {
  data: Data
  attributes: Data[]
}

/** What a written `data` makes of an asset, or what is wrong with it. */
export function parseAssetData(
  type: AssetType,
  data: Data,
  known: { uuid: string; attributes: Data[] },
): AssetContent | { problem: string } {
  if (type === 'identity') return parseIdentity(data, known)
  const parsed = plain[type].safeParse(data)
  if (parsed.success) return { data: parsed.data, attributes: [] }
  return { problem: problemOf(type, parsed.error) }
}

/** Written with its attributes, read with a uuid alone; what was read may be written again. */
function parseIdentity(
  data: Data,
  { uuid, attributes }: { uuid: string; attributes: Data[] },
): AssetContent | { problem: string } {
  if (data['uuid'] === uuid && attributes.length > 0) return { data: { uuid }, attributes }
  const parsed = identity.safeParse(data)
  if (parsed.success) return { data: { uuid }, attributes: parsed.data.attributes }
  return { problem: problemOf('identity', parsed.error) }
}

const attribute = z
  .looseObject({ type: z.enum(['email', 'username', 'name', 'keyword', 'domain', 'ip', 'secret']) })
  .superRefine((given, context) => {
    const parsed = plain[given.type].safeParse(given)
    for (const { path, message } of parsed.error?.issues ?? []) {
      context.addIssue({ code: 'custom', path, message })
    }
  })

const identity = z.strictObject({
  type: z.literal('identity').optional(),
  attributes: z.array(attribute).min(1).max(15),
})

function problemOf(type: AssetType, error: z.ZodError): string {
  const said = error.issues.map(({ path, message }) => `${['data', ...path].join('.')}: ${message}`)
  return `data does not fit an asset of type ${type}: ${said.join('; ')}`
}
