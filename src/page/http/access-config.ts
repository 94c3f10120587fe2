/** The configuration of who may use the page and its API: users, a proxy that names them, the address. */
import { isIP } from 'node:net'
import { z } from 'zod'
import {
  type Finding,
  isSection,
  list,
  name,
  refusal,
  section,
  textField,
  word,
} from '../../lib/config/config-fields.ts'
import { passwordHashProblem } from '../../lib/password-hash.ts'
import {
  declareSecretFile,
  type Secret,
  secretFromSection,
  secretKeys,
  secretRule,
} from '../../lib/config/secret.ts'
import { webAddressProblem } from '../../lib/config/web-address.ts'

/** Who may use the page or its API. With neither hash nor token: who comes by the proxy alone. */
export interface HttpUser {
  name: string
  role: 'read' | 'act'
  accounts: readonly string[] | 'all'
  passwordHash?: Secret
  token?: Secret
}

const maxNameLength = 100

const nameRemedy = `write up to ${maxNameLength} characters in one line, without blanks at the ends`

const nameField = textField({
  describe: 'Name, as it is typed, as the proxy says it, and as acts are recorded.',
  remedy: nameRemedy,
  parse: (input) => {
    const isName = input.length <= maxNameLength && !/[\p{C}\p{Zl}\p{Zp}]|^\s|\s$/u.test(input)
    return isName ? input : refusal('not a usable name', nameRemedy)
  },
})

/** Drawn, not thought up: no limit of guesses holds for tokens that are right. */
const leastTokenLength = 32

const drawRemedy = 'draw one: openssl rand -hex 32'

declareSecretFile('token_file')

const user = section(
  {
    name: nameField,
    ...secretKeys('password_hash', 'Hash of the password, as `tocsin users hash` prints it.'),
    token_file: z
      .string({ error: `not a path\nname a file that holds a token; ${drawRemedy}` })
      .meta({
        description: 'File that holds a token for the API, read at each use and trimmed.',
      })
      .optional(),
    role: word(['read', 'act'], 'Whether the user may only look, or also act.'),
    accounts: list(
      name('Name of an account.'),
      'Accounts of which the user sees anything. Default: all.',
      'write a list of accounts, such as [main]',
    ).optional(),
  },
  {
    describe: 'A user of the page and its API.',
    rules: [
      secretRule('password_hash', { required: false, check: checkHash }),
      secretRule('token', { required: false, check: checkToken }),
    ],
  },
)

/** Not by a transform of its own: the rule below compares users by the keys of the file. */
export function toUser(written: z.output<typeof user>): HttpUser {
  const { name: userName, role, accounts = 'all', token_file } = written
  const token = secretFromSection({ token_file }, 'token')
  const passwordHash = secretFromSection(written, 'password_hash')
  return {
    name: userName,
    role,
    accounts,
    ...(token && { token }),
    ...(passwordHash && { passwordHash }),
  }
}

function checkHash(written: string): ReturnType<typeof refusal> | undefined {
  const problem = passwordHashProblem(written)
  return problem === undefined ? undefined : refusal(problem, 'make one: tocsin users hash')
}

function checkToken(token: string): ReturnType<typeof refusal> | undefined {
  if (!/^[\x21-\x7e]*$/.test(token)) return refusal('blanks or letters beyond ASCII', drawRemedy)
  if (token.length >= leastTokenLength) return undefined
  return refusal(`shorter than ${leastTokenLength} characters`, drawRemedy)
}

const fromRemedy = 'write addresses or networks, such as 10.0.0.5 or 10.1.0.0/16'

const network = textField({
  describe: 'An address, or a network such as 10.1.0.0/16.',
  remedy: fromRemedy,
  parse: (input) => {
    if (!isNetwork(input)) return refusal('neither an address nor a network', fromRemedy)
    return input.endsWith('/0') ? refusal('every address', fromRemedy) : input
  },
})

function isNetwork(input: string): boolean {
  const [, address = '', bits] = /^([\da-f.:]+)(?:\/(\d{1,3}))?$/i.exec(input) ?? []
  const version = isIP(address)
  return version !== 0 && Number(bits ?? 0) <= (version === 4 ? 32 : 128)
}

const headerRemedy = 'write the name of a header, such as X-Forwarded-User'

const proxy = section(
  {
    header: textField({
      describe:
        'Header by which it names the user that it has signed in. It must remove this header from requests. Left out: it names nobody.',
      remedy: headerRemedy,
      parse: (input) =>
        /^[\w-]{1,100}$/.test(input) ? input.toLowerCase() : refusal('not a header', headerRemedy),
    }).optional(),
    from: list(network, 'Its addresses. From any other its headers are ignored.', fromRemedy),
  },
  { describe: 'A proxy in front, believed when it says whose requests it forwards.' },
).transform(({ header, ...given }) => ({ ...given, ...(header !== undefined && { header }) }))

const urlRemedy = 'write an address without a path, such as https://tocsin.example.net'

/** The three keys, for the section `http`. */
export const accessKeys = {
  public_url: textField({
    describe:
      'Address under which people reach the page. Links in messages lead there, and requests for its name are answered. With https:// cookies stay within TLS.',
    remedy: urlRemedy,
    expected: 'a URL',
    examples: ['https://tocsin.example.net'],
    parse: (input) => {
      const problem = webAddressProblem(input.trim(), () => true)
      if (problem) return problem
      const url = new URL(input.trim())
      return url.href === `${url.origin}/` ? url.origin : refusal('has a path', urlRemedy)
    },
  }).optional(),
  users: list(
    user,
    'Who may use the page and its API. Without users the page shows itself on loopback alone, and nobody can act.',
    'write each user with its name and role',
  ).optional(),
  proxy: proxy.optional(),
}

/** What the users of a section say only together. */
export function usersRule(http: Readonly<Record<string, unknown>>): Finding[] {
  const users = Array.isArray(http['users']) ? http['users'].map((one) => toSection(one)) : []
  const names = users.map(({ name: written }) => written)
  const isNamedByProxy = toSection(http['proxy'])['header'] !== undefined
  return users.flatMap((one, index) => {
    const path = ['users', index]
    if (typeof one['name'] !== 'string') return []
    if (names.indexOf(one['name']) < index) {
      return [{ path: [...path, 'name'], problem: 'another user has it', remedy: 'choose another' }]
    }
    const keys = ['password_hash', 'password_hash_file', 'token_file']
    if (isNamedByProxy || keys.some((key) => one[key] !== undefined)) return []
    const remedy = 'write password_hash or token_file, or http.proxy with a header'
    return [{ path, problem: 'a user who cannot sign in', remedy }]
  })
}

function toSection(value: unknown): Readonly<Record<string, unknown>> {
  return isSection(value) ? value : {}
}
