import type { z } from 'zod'
import { refusal, textField, wholeNumber } from '../runtime/config-fields.ts'
import { laterKeys, section } from '../runtime/config-section.ts'

export interface HttpConfig {
  host: string
  port: number
}

const hostRemedy = 'write an address or a host name, such as 127.0.0.1 or 0.0.0.0'

export const httpConfig: z.ZodType<HttpConfig> = section(
  {
    host: textField({
      describe: 'Address to listen on.',
      remedy: hostRemedy,
      parse: (input) => (/^[\w.:%-]+$/.test(input) ? input : refusal('not a host', hostRemedy)),
    }).prefault('127.0.0.1'),
    port: wholeNumber({
      describe: 'Port of /metrics, /healthz and /readyz; 0 takes a free one.',
      min: 0,
      max: 65_535,
    }).prefault(9464),
    ...laterKeys({ password: 'it serves only /metrics, /healthz and /readyz, which take none' }),
  },
  { describe: 'Where metrics and health are served.' },
).transform(({ host, port }) => ({ host, port }))
