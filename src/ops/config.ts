/** The configuration of the HTTP server. */
import type { z } from 'zod'
import {
  type Finding,
  list,
  refusal,
  section,
  text,
  textField,
  wholeNumber,
  word,
} from '../lib/config-fields.ts'
import { declareSecretFile } from '../lib/secret.ts'
import { accessKeys, toUser, usersRule } from './access-config.ts'
import { findOccupant } from './reload-access.ts'

const hostRemedy = 'write an address or a host name, such as 127.0.0.1 or 0.0.0.0'
const namesRemedy = 'write a list of names, such as [tocsin.example.net]'

function hostField(describe: string, remedy: string): z.ZodType<string> {
  return textField({
    describe,
    remedy,
    parse: (input) => (/^[\w.:%-]+$/.test(input) ? input : refusal('not a host', remedy)),
  })
}

declareSecretFile('token_file')

export const httpConfig = section(
  {
    host: hostField('Address to listen on.', hostRemedy).prefault('127.0.0.1'),
    port: wholeNumber({
      describe: 'Port of /metrics, /healthz, /readyz and the page; 0 takes a free one.',
      min: 0,
      max: 65_535,
    }).prefault(9464),
    hosts: list(
      hostField('Such as tocsin.example.net.', namesRemedy),
      'Names with a dot under which requests come; a request with any other is refused (421).',
      namesRemedy,
    ).optional(),
    metrics: word(
      ['brief', 'detailed'],
      'Which series and labels /metrics has; detailed: all, each from its start.',
    ).prefault('brief'),
    token_file: text(
      'Where the daemon writes the token that `POST /-/reload` takes, readable by its user alone; by default in $RUNTIME_DIRECTORY, or else in the folder for temporary files.',
    ).optional(),
    ...accessKeys,
  },
  {
    describe: 'Where metrics, health and the page are served, and to whom.',
    rules: [tokenFileRule, usersRule],
  },
).transform(({ hosts, users, token_file: tokenFile, public_url: publicUrl, proxy, ...given }) => ({
  ...given,
  hosts: hosts ?? [],
  users: (users ?? []).map(toUser),
  ...(proxy !== undefined && { proxy }),
  ...(publicUrl !== undefined && { publicUrl }),
  ...(tokenFile !== undefined && { tokenFile }),
}))

/** What another user's daemon wrote is its own. */
function tokenFileRule({ token_file: path }: Readonly<Record<string, unknown>>): Finding[] {
  const occupant = typeof path === 'string' ? findOccupant(path) : undefined
  if (occupant === undefined || occupant.code === 'EACCES') return []
  const { problem, remedy } = occupant
  return [{ path: ['token_file'], problem, remedy }]
}

export type HttpConfig = z.output<typeof httpConfig>
