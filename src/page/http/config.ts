/** The configuration of the HTTP server. */
import type { z } from 'zod'
import { list, refusal, section, textField, wholeNumber } from '../../lib/config/config-fields.ts'
import { accessKeys, toUser, usersRule } from './access-config.ts'

const hostRemedy = 'write an address or a host name, such as 127.0.0.1 or 0.0.0.0'
const namesRemedy = 'write a list of names, such as [tocsin.example.net]'

function hostField(describe: string, remedy: string): z.ZodType<string> {
  return textField({
    describe,
    remedy,
    parse: (input) => (/^[\w.:%-]+$/.test(input) ? input : refusal('not a host', remedy)),
  })
}

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
    ...accessKeys,
  },
  {
    describe: 'Where metrics, health and the page are served, and to whom.',
    rules: [usersRule],
  },
).transform(({ hosts, users, public_url: publicUrl, proxy, ...given }) => ({
  ...given,
  hosts: hosts ?? [],
  users: (users ?? []).map(toUser),
  ...(proxy !== undefined && { proxy }),
  ...(publicUrl !== undefined && { publicUrl }),
}))

export type HttpConfig = z.output<typeof httpConfig>
