/** Configurations of an operator in a hurry, each with a secret where none belongs, or ill written. */
import { planted } from './planted-secrets.ts'

const good = `
redis: {url: 'redis://127.0.0.1:1'}
accounts:
  main: {base_url: 'https://api.example.com', api_key: 'key'}
feeds:
  brand: {type: events, identifier_group: 1}
sinks:
  soc: {type: slack, url: 'https://hooks.example.com/x'}
  siem: {type: webhook, url: 'https://h.example.com/x', secret: a-secret-of-24-bytes-abc}
  oncall: {type: email, smtp: 'smtp://h.example.com', from: a@example.com, to: [b@example.com]}
route: {sinks: [soc]}
`

/** What stands there, and what may have been written instead; `SECRET` is the secret. */
const slips: [string, string][] = [
  ["api_key: 'key'", 'api_key:SECRET'],
  ["api_key: 'key'", 'api_key=SECRET'],
  ["api_key: 'key'", 'api_key: *SECRET'],
  ["api_key: 'key'", 'api_key: !SECRET'],
  ["api_key: 'key'", 'api_key: @SECRET'],
  ["api_key: 'key'", 'api_key: "SECRET'],
  ["api_key: 'key'", 'api_key: [SECRET]'],
  ["api_key: 'key'", 'api_key: "${SECRET"'],
  ["api_key: 'key'", 'api_key_file: SECRET'],
  ["api_key: 'key'", 'api_key_file: a/b/SECRET'],
  ["api_key: 'key'", `api_key: 'a SECRET'`],
  ["api_key: 'key'", `api_key: key, proxy: 'http://a:%SECRET@h'`],
  ['redis://127.0.0.1:1', 'redis://:%SECRET@127.0.0.1'],
  ['redis://127.0.0.1:1', 'redis://:SECRET@127.0.0.1:99999'],
  [`soc: {`, `'https://hooks.example.com/SECRET': {`],
  [`sinks: [soc]`, `sinks: ['https://hooks.example.com/SECRET']`],
  [`url: 'https://hooks.example.com/x'`, `url_file: 'https://hooks.example.com/SECRET'`],
  ['https://hooks.example.com/x', 'hooks.example.com/SECRET'],
  ['https://h.example.com/x', 'http://h.example.com/SECRET'],
  ['https://api.example.com', 'https://a:SECRET@api.example.com'],
  ['secret: a-secret-of-24-bytes-abc', 'secret: whsec_SECRET!'],
  ['bytes-abc}', 'bytes-abc, secret: SECRET}'],
  ['smtp://h.example.com', 'smtp://a:SECRET%@h.example.com'],
  ['smtp://h.example.com', 'http://a:SECRET@h.example.com'],
  ['a@example.com', 'smtp://a:SECRET@h.example.com'],
]

/** By what was written in them. */
export const wrongConfigs: [string, string][] = slips.map(([right, wrong]) => [
  wrong,
  good.replace(right, () => wrong.replace('SECRET', planted.mistaken)),
])
